package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"cnictl/testenv"
	"cnictl/testenv/text/terminal"
)

//testlayers:uses=testenv/cmd/demo,cmd/...
func TestMain(m *testing.M) { testenv.Main(m) }

// command returns the built demo, started as a user does: it creates its own sandbox.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	testenv.RequireKernel(t, "veth", "nft", "iptables")
	bin := os.Getenv("CNI_TEST_BIN")
	if bin == "" {
		bin = filepath.Join("..", "..", "..", "bin")
	}
	path, err := filepath.Abs(filepath.Join(bin, "demo"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("built binaries are missing; run: make build: %v", err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "CNICTL_TESTENV_") }), "TMPDIR="+t.TempDir())
	return cmd
}

func TestOnce(t *testing.T) {
	cmd := command(t, "--once")
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil || !bytes.HasSuffix(out, []byte("\nleftovers: 0\n")) {
		t.Fatalf("demo --once: %v\n%s%s", err, out, &errOut)
	}
	got := map[string]int{}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 2 && f[1] == "ok" {
			got[f[2]]++
		}
	}
	// Which paths can be pinged depends on which addresses the pods got.
	for step, atLeast := range map[string]int{
		"boot": 3, "daemon": 3, "add": 26, "ping": 20, "outside": 6, "cnictl": 1, "delete": 26, "left": 5, "stop": 5,
	} {
		if got[step] < atLeast {
			t.Errorf("%d %q steps, want at least %d:\n%s", got[step], step, atLeast, out)
		}
	}
	for _, want := range []string{
		"pod to its node", "pod to another node", "node to its pod", "pod to pod on one ENI",
		"pod to pod across ENIs of one node", "pod to pod on another node", "outside saw 10.0.0.4",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("output does not mention %q:\n%s", want, out)
		}
	}
	if left, err := filepath.Glob(filepath.Join(tmpdir(cmd), "*")); err != nil || len(left) != 0 {
		t.Errorf("left in the temporary directory: %v, %v", left, err)
	}
}

func tmpdir(cmd *exec.Cmd) string {
	for _, e := range cmd.Env {
		if dir, ok := strings.CutPrefix(e, "TMPDIR="); ok {
			return dir
		}
	}
	return ""
}

// TestKilled_Terminal: when a demo is killed while its screens are open, the terminal is
// restored, and the next run removes its directory.
func TestKilled_Terminal(t *testing.T) {
	for args, node := range map[string]string{"": "worker-1", "--fleet 5": "ip-10-"} {
		t.Run(args, func(t *testing.T) { killedOnTerminal(t, args, node) })
	}
}

func killedOnTerminal(t *testing.T, args, node string) {
	t.Helper()
	cmd := command(t, "--fleet", "5")
	file := filepath.Join(t.TempDir(), "pid")
	// As under a shell, the demo is not the leader of its session.
	x, err := terminal.Start(t.Context(), terminal.Options{Columns: 100, Rows: 30, Keep: true, Env: append(slices.Clone(cmd.Env), "TERM=xterm-256color")},
		"/bin/sh", "-c", `sh -c 'echo $$ >"$1"; exec "$0" $2' "$0" "$1" "$2"; echo "exit $?"; until stty -a | grep -q ' icanon'; do :; done; echo restored; read key`, cmd.Path, file, args)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Kill()
	await := func(what, text string) {
		if err := x.AwaitDrawn(testenv.Context(t), 0, func(drawn string) bool { return strings.Contains(drawn, text) }); err != nil {
			t.Fatalf("%s: %v\n%q", what, err, x.Drawn())
		}
	}
	await("the screens", "\x1b[?1049h")
	await("a node", node)
	pid, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(pid)))
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(n, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await("the end", "exit 137")
	await("the end of the alternate screen", "\x1b[?1049l")
	await("the terminal's old state", "restored")
	left := func() []string {
		dirs, err := filepath.Glob(filepath.Join(tmpdir(cmd), "*"))
		if err != nil {
			t.Fatal(err)
		}
		return dirs
	}
	if dirs := left(); len(dirs) != 1 {
		t.Errorf("of the run that was killed: %v", dirs)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the next run: %v\n%s", err, out)
	}
	if dirs := left(); len(dirs) != 0 {
		t.Errorf("after the next run: %v", dirs)
	}
}

// TestFleet: without a terminal, the output of two commands about a simulated fleet is shown.
func TestFleet(t *testing.T) {
	cmd := command(t, "--fleet", "25")
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("demo --fleet: %v\n%s%s", err, out, &errOut)
	}
	for _, want := range []string{"25 simulated nodes", "$ cnictl status\nNODES 25 ", "$ cnictl nodes\nNODE ", "\nip-10-0-0-4.eu-west-1.compute.internal ", "and 5 more lines"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("output does not hold %q:\n%s%s", want, out, &errOut)
		}
	}
	if left, err := filepath.Glob(filepath.Join(tmpdir(cmd), "*")); err != nil || len(left) != 0 {
		t.Errorf("left in the temporary directory: %v, %v", left, err)
	}
}
