package agent_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/testenv"
	"cnictl/testenv/node/agent"
)

func start(t *testing.T, name string) *agent.Agent {
	t.Helper()
	testenv.RequireRoot(t)
	var log bytes.Buffer
	a, err := agent.Start(t.Context(), name, &log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		if log.Len() > 0 {
			t.Errorf("the agent printed: %s", &log)
		}
	})
	if a.Warning != "" {
		t.Log(a.Warning)
	}
	return a
}

func sh(script string) agent.Cmd {
	return agent.Cmd{Argv: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}}
}

func TestRun(t *testing.T) {
	t.Parallel()
	a := start(t, "alpha")
	c := sh(`cat; hostname >&2; exit 3`)
	c.Stdin = []byte("from stdin")
	r, err := a.Run(c)
	if err != nil {
		t.Fatal(err)
	}
	if string(r.Stdout) != "from stdin" || string(r.Stderr) != "alpha\n" || r.Code != 3 {
		t.Errorf("Run = stdout %q, stderr %q, code %d", r.Stdout, r.Stderr, r.Code)
	}
	if r.Wall <= 0 || r.CPU() <= 0 || r.MaxRSS <= 0 || r.MinFault <= 0 {
		t.Errorf("nothing was measured: %+v", r)
	}
	if _, err := a.Run(agent.Cmd{Argv: []string{"/nonexistent"}}); !errors.Is(err, unix.ENOENT) {
		t.Errorf("Run of a missing program = %v, want ENOENT", err)
	}
}

func TestRun_KilledWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	a := start(t, "slow")
	c := sh("sleep 600")
	c.Timeout = 50 * time.Millisecond
	r, err := a.Run(c)
	if err != nil || !r.TimedOut || r.Code != 128+int(unix.SIGKILL) {
		t.Errorf("Run = %+v, error %v; want killed", r, err)
	}
}

func TestRun_SideBySide(t *testing.T) {
	t.Parallel()
	a := start(t, "busy")
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			r, err := a.Run(sh(fmt.Sprintf("echo %d", i)))
			if want := fmt.Sprintf("%d\n", i); err != nil || string(r.Stdout) != want {
				t.Errorf("Run = %q, error %v, want %q", r.Stdout, err, want)
			}
		})
	}
	wg.Wait()
}

func TestBackground(t *testing.T) {
	t.Parallel()
	a := start(t, "daemon")
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	pid, err := a.Background(sh(`trap 'echo bye; exit 7' TERM; echo up; while :; do sleep 0.01; done`), out, out)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the daemon to start", func() bool { return read(t, out.Name()) == "up\n" })
	if err := a.Signal(pid, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	r, err := a.Wait(pid)
	if err != nil || r.Code != 7 || read(t, out.Name()) != "up\nbye\n" {
		t.Errorf("Wait = code %d, error %v; output %q", r.Code, err, read(t, out.Name()))
	}
	if _, err := a.Wait(pid); !errors.Is(err, unix.ECHILD) {
		t.Errorf("second Wait = %v, want ECHILD", err)
	}
	if err := a.Signal(pid, unix.SIGTERM); !errors.Is(err, unix.ESRCH) {
		t.Errorf("Signal after Wait = %v, want ESRCH", err)
	}
}

func TestClose_EndsEverythingInTheNode(t *testing.T) {
	testenv.RequireRoot(t)
	t.Parallel()
	a, err := agent.Start(t.Context(), "doomed", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe() // reads end of file once the last writer is dead
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	// The second process is an orphan that ignores TERM, HUP and INT.
	if _, err := a.Background(sh(`(trap '' TERM HUP INT; echo up; while :; do sleep 0.1; done) & wait`), w, w); err != nil {
		t.Fatal(err)
	}
	w.Close()
	in := bufio.NewReader(r)
	if line, err := in.ReadString('\n'); line != "up\n" {
		t.Fatalf("daemon said %q, error %v", line, err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(in); err != nil || len(rest) != 0 {
		t.Errorf("after Close: %q, error %v", rest, err)
	}
	if _, err := a.Run(sh("true")); err == nil {
		t.Error("Run succeeded after Close")
	}
}

func TestNodesAreApart(t *testing.T) {
	t.Parallel()
	a, b := start(t, "left"), start(t, "right")
	write := func(x *agent.Agent, path, text string) {
		f, err := x.Open(path, os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	write(a, "/run/mark", "left")
	write(b, "/run/mark", "right")
	for x, want := range map[*agent.Agent]string{a: "left", b: "right"} {
		r, err := x.Run(sh("cat /var/run/mark; echo; hostname; ls /proc | grep -c '^[0-9]'"))
		if err != nil || !strings.HasPrefix(string(r.Stdout), want+"\n"+want+"\n") {
			t.Errorf("node %s: %q, error %v", want, r.Stdout, err)
		}
	}
	if _, err := os.Stat("/run/mark"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a node's /run is the starter's: %v", err)
	}
	inodeA, errA := a.NS.Inode()
	inodeB, errB := b.NS.Inode()
	if errA != nil || errB != nil || inodeA == inodeB {
		t.Errorf("network namespaces %d (%v) and %d (%v)", inodeA, errA, inodeB, errB)
	}
	if _, err := a.Open("/run/absent", os.O_RDONLY, 0); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Open of an absent file = %v", err)
	}
}

func TestNetns(t *testing.T) {
	t.Parallel()
	a := start(t, "pods")
	ns, err := a.AddNetns("cni-1")
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	if err := ns.Ping(netip.Addr{}, netip.MustParseAddr("127.0.0.1"), 2*time.Minute); err != nil {
		t.Errorf("lo of the pod: %v", err)
	}
	r, err := a.Run(sh("stat -Lc %i /run/netns/cni-1"))
	inode, inodeErr := ns.Inode()
	if err != nil || inodeErr != nil || strings.TrimSpace(string(r.Stdout)) != fmt.Sprint(inode) {
		t.Errorf("inode by path %q (%v), by descriptor %d (%v)", r.Stdout, err, inode, inodeErr)
	}
	if _, err := a.AddNetns("cni-1"); !errors.Is(err, unix.EEXIST) {
		t.Errorf("second AddNetns = %v, want EEXIST", err)
	}
	if err := a.RemoveNetns("cni-1"); err != nil {
		t.Error(err)
	}
	if err := a.RemoveNetns("cni-1"); !errors.Is(err, unix.ENOENT) {
		t.Errorf("second RemoveNetns = %v, want ENOENT", err)
	}
}

func TestDial_ReachesSocketsOfTheNode(t *testing.T) {
	t.Parallel()
	a := start(t, "server")
	tcp, err := a.NS.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	go greet(tcp)
	c, err := a.Dial("tcp", tcp.Addr().String(), 2*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got, err := io.ReadAll(c); string(got) != "hello" || err != nil {
		t.Errorf("read %q, error %v", got, err)
	}
	if _, err := a.Dial("unix", "/run/missing.sock", time.Second); !errors.Is(err, unix.ENOENT) {
		t.Errorf("Dial of no socket = %v, want ENOENT", err)
	}
}

// greet serves one connection.
func greet(l net.Listener) {
	if c, err := l.Accept(); err == nil {
		defer c.Close()
		_, _ = io.WriteString(c, "hello") // the reader compares
	}
}

func TestBind_OnlyInTheNode(t *testing.T) {
	t.Parallel()
	a := start(t, "bound")
	dir := t.TempDir()
	inside, outside := filepath.Join(dir, "inside"), filepath.Join(dir, "outside")
	for _, d := range []string{inside, outside} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d, "name"), []byte(filepath.Base(d)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Bind(inside, outside); err != nil {
		t.Fatal(err)
	}
	r, err := a.Run(sh("cat " + outside + "/name"))
	if err != nil || string(r.Stdout) != "inside" {
		t.Errorf("in the node: %q, error %v", r.Stdout, err)
	}
	if got := read(t, outside+"/name"); got != "outside" {
		t.Errorf("outside the node: %q", got)
	}
	if err := a.Bind(inside, filepath.Join(dir, "absent")); !errors.Is(err, unix.ENOENT) {
		t.Errorf("Bind over nothing = %v, want ENOENT", err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
