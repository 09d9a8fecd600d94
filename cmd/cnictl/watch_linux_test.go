package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/fleet/fleettest"
	"cnictl/testenv/kube/fleetsim"
)

// TestProcess_FollowsMembers: nodes -w reports nodes that leave and join, with one list request
// per kind.
func TestProcess_FollowsMembers(t *testing.T) {
	t.Parallel()
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 5, Seed: 1, Churn: -1, NodeChurn: 500 * time.Millisecond})
	dir := t.TempDir()
	kubeconfig, err := sim.WriteKubeconfig(dir)
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, "log")
	cmd := exec.CommandContext(t.Context(), binary(t), "nodes", "-w", "-o", "json", "--interval=2s", "-v=8", "--log-file="+log, "--kubeconfig="+kubeconfig)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	left, joined := map[string]bool{}, false
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for !joined && lines.Scan() {
		var doc struct {
			State    string
			Metadata struct{ Name string }
			Error    *struct{ Reason string }
		}
		if err := json.Unmarshal(lines.Bytes(), &doc); err != nil {
			t.Fatalf("%v: %.80s", err, lines.Bytes())
		}
		switch {
		case doc.Error != nil && doc.Error.Reason == "not-found":
			left[doc.Metadata.Name] = true
		case doc.State == "live" && left[doc.Metadata.Name]:
			joined = true
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || !joined {
		t.Errorf("%v, left %v, joined again: %v", err, left, joined)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	lists := map[string]int{}
	for _, m := range regexp.MustCompile(`verb="GET" url="https://[^"]*/(nodes|pods)\?([^"]*)"`).FindAllStringSubmatch(string(text), -1) {
		if !strings.Contains(m[2], "watch=") {
			lists[m[1]]++
		}
	}
	if lists["nodes"] != 1 || lists["pods"] != 1 {
		t.Errorf("lists %v", lists)
	}
}

// TestProcess_WatchOutage: nodes -w warns once that the API server is unreachable, and does not
// report nodes as failed because of it.
func TestProcess_WatchOutage(t *testing.T) {
	t.Parallel()
	const nodes = 40
	sim := fleetsim.New(t, fleetsim.Options{Nodes: nodes, Seed: 1, Churn: -1})
	kubeconfig, err := sim.WriteKubeconfig(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary(t), "nodes", "-w", "-o", "json", "--interval=2s", "--node-timeout=1m", "--kubeconfig="+kubeconfig)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	warned, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	warnings := make(chan []string)
	go func() {
		var all []string
		for lines := bufio.NewScanner(warned); lines.Scan(); {
			if all = append(all, lines.Text()); strings.Contains(lines.Text(), "unreachable") {
				_ = cmd.Process.Signal(os.Interrupt) // Wait reports how it ended
			}
		}
		warnings <- all
	}()
	live, failed := map[string]bool{}, []string{}
	for lines := json.NewDecoder(out); ; {
		var doc struct {
			State    string
			Metadata struct{ Name string }
			Error    any
		}
		if lines.Decode(&doc) != nil {
			break
		}
		switch {
		case doc.State != "live":
			failed = append(failed, fmt.Sprint(doc.State, " ", doc.Error))
		case !live[doc.Metadata.Name]:
			if live[doc.Metadata.Name] = true; len(live) == nodes {
				sim.Close()
			}
		}
	}
	all := <-warnings
	if err := cmd.Wait(); err != nil || len(failed) > 0 || len(live) != nodes {
		t.Errorf("%v, %d live, failed: %q", err, len(live), failed)
	}
	if len(all) != 1 || !strings.HasPrefix(all[0], "warning: API server ") || !strings.HasSuffix(all[0], " unreachable: connection refused; retrying") {
		t.Errorf("warnings %q", all)
	}
}

// silent accepts connections and never answers.
func silent(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return "unix:" + ln.Addr().String()
}

// TestTerminal_Progress: anything that takes longer than a second shows one progress line, which
// is erased when the answer arrives.
func TestTerminal_Progress(t *testing.T) {
	t.Parallel()
	address := silent(t)
	x := onTerminal(t, 100, []string{"NO_COLOR=1"}, "nodes", "--concurrency=1", "--node-timeout=700ms", "--targets=a="+address+",b="+address+",c="+address+",d="+address)
	if code := x.end(); code != 5 {
		t.Errorf("exit %d", code)
	}
	if !regexp.MustCompile(`\r\x1b\[Knodes [23]/4  ok 0  failed [23]  \d+\.\d+s`).MatchString(x.text()) {
		t.Errorf("no progress in %q", x.text())
	}
	before, after, _ := strings.Cut(x.text(), "NODE")
	if !strings.HasSuffix(before, "\r\x1b[K") || strings.Contains(after, "\x1b[K") {
		t.Errorf("the line stays: %q", x.text())
	}
}

// TestTerminal_Interrupt: Ctrl-C on a terminal ends a reading with the results so far and
// exit code 130.
func TestTerminal_Interrupt(t *testing.T) {
	t.Parallel()
	good := fleettest.Serve(t, t.TempDir(), "n", fleettest.Secondary())
	targets := "--targets=good=" + good
	for _, name := range []string{"v", "w", "x", "y", "z"} {
		targets += "," + name + "=" + silent(t)
	}
	x := onTerminal(t, 100, nil, "nodes", "--concurrency=2", "--node-timeout=8s", "--timeout=1h", targets)
	x.await("progress", holds("ok 1  failed ", 1))
	x.press(ctrlC)
	if code := x.end(); code != 130 || !strings.Contains(x.text(), "good") {
		t.Errorf("exit %d, %q", code, x.text())
	}
}

// TestTerminal_Resize: a watched status is redrawn when the terminal gets another size.
func TestTerminal_Resize(t *testing.T) {
	t.Parallel()
	target := "--targets=the-node=" + fleettest.Serve(t, t.TempDir(), "n", fleettest.Secondary())
	x := onTerminal(t, 100, nil, "status", "-w", "--interval=1h", target)
	x.await("the first frame", holds(beginOfFrame, 1))
	x.resize(70, 30)
	x.await("a frame on an empty screen", holds(beginOfFrame+"\x1b[H\x1b[2J", 1))
	x.press(ctrlC)
	if code := x.end(); code != 0 {
		t.Errorf("exit %d", code)
	}
}

// TestTerminal_Replay: a recording plays on the screens, at the requested speed.
func TestTerminal_Replay(t *testing.T) {
	t.Parallel()
	x := onTerminal(t, 120, nil, "replay", "../../docs/tour.cnirec", "--speed=60")
	x.await("the screen", holds(alternateScreen, 1))
	x.await("a node", holds("ip-10-", 1))
	x.press("q")
	if code := x.end(); code != 0 || !strings.Contains(x.text(), formerScreen) {
		t.Errorf("exit %d, %q", code, x.text())
	}
}
