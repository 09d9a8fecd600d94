package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"cnictl/daemon/fleet/fleettest"
	"cnictl/testenv"
)

// suite builds into a directory that is removed after the tests.
type suite struct{ *testing.M }

// built is the real binary, built when the first test needs it.
var built struct {
	dir  string
	once sync.Once
	said []byte
	err  error
}

func (s suite) Run() int {
	dir, err := os.MkdirTemp("", "cnictl-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	built.dir = dir
	return s.M.Run()
}

// binary returns the real binary, as releases build it.
func binary(t *testing.T) string {
	t.Helper()
	out := filepath.Join(built.dir, "cnictl")
	built.once.Do(func() {
		built.said, built.err = exec.Command("go", "build", "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", out, ".").CombinedOutput()
	})
	if built.err != nil {
		t.Fatalf("build: %v\n%s", built.err, built.said)
	}
	return out
}

// TestProcess_OutputClosed: if the reader of its output has gone, the tool ends
// quietly.
func TestProcess_OutputClosed(t *testing.T) {
	t.Parallel()
	target := "n=" + fleettest.Serve(t, t.TempDir(), "n", fleettest.Secondary())
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	var said strings.Builder
	cmd := exec.CommandContext(t.Context(), binary(t), "nodes", "-o", "json", "--targets", target)
	cmd.Stdout, cmd.Stderr = w, &said
	err = cmd.Run()
	w.Close()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status := exit.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGPIPE {
			t.Errorf("it ended with %v", err)
		}
	}
	if said.Len() > 0 {
		t.Errorf("it said %q", said.String())
	}
}

// TestProcess_Interrupt: the first interrupt ends the reading, prints the results so far and
// exits with 130.
func TestProcess_Interrupt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	silent, err := net.Listen("unix", filepath.Join(dir, "silent.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	accepted := make(chan net.Conn, 8)
	go func() {
		for {
			c, err := silent.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	targets := "n=" + fleettest.Serve(t, dir, "n", fleettest.Secondary()) + ",silent=unix:" + silent.Addr().String()
	var out, said strings.Builder
	cmd := exec.CommandContext(t.Context(), binary(t), "nodes", "-o", "json", "--node-timeout=1m", "--targets", targets, "--concurrency=1")
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer testenv.Receive(t, "a request to the silent node", accepted).Close() // the other node was read earlier
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit %d: %v", code, err)
	}
	if !strings.Contains(out.String(), `"state": "live"`) || !strings.Contains(out.String(), `"partial": true`) {
		t.Errorf("it printed %s", out.String())
	}
}

// TestProcess_InterruptTwice: a second interrupt immediately ends a process that the first
// one cannot end because nobody reads its output.
func TestProcess_InterruptTwice(t *testing.T) {
	t.Parallel()
	target := fleettest.Serve(t, t.TempDir(), "n", fleettest.Secondary())
	var targets []string
	for i := range 100 {
		targets = append(targets, fmt.Sprintf("n%d=%s", i, target))
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.CommandContext(t.Context(), binary(t), "ips", "-o", "json", "--targets", strings.Join(targets, ","))
	cmd.Stdout = w
	err = cmd.Start()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	if _, err := r.Read(make([]byte, 1)); err != nil { // it prints, and more than a pipe holds
		t.Fatal(err)
	}
	go func() { ended <- cmd.Wait() }()
	interrupts := 0
	testenv.Eventually(t, "the end of the process", func() bool {
		select {
		case err = <-ended:
			return true
		default:
		}
		if err := cmd.Process.Signal(os.Interrupt); err == nil {
			interrupts++
		}
		return false
	})
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGINT || interrupts < 2 {
		t.Errorf("%v after %d interrupts", err, interrupts)
	}
}

// TestProcess_Pager: --paged sends output through $PAGER only on a terminal, and waits for the
// pager to exit.
func TestProcess_Pager(t *testing.T) {
	t.Parallel()
	target := "n=" + fleettest.Serve(t, t.TempDir(), "n", fleettest.Secondary())
	bin := binary(t)
	for tty, want := range map[string]string{"CNICTL_FORCE_TTY=100x30": "paged: NODE", "CNICTL_FORCE_TTY=": "NODE"} {
		cmd := exec.CommandContext(t.Context(), bin, "nodes", "--paged", "--color=never", "--node-timeout=1m", "--targets", target)
		cmd.Env = append(os.Environ(), "PAGER=sed 's/^/paged: /'", tty)
		out, err := cmd.Output()
		first, _ := bufio.NewReader(strings.NewReader(string(out))).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) || !strings.HasPrefix(first, want+" ") {
			t.Errorf("%s: %v %q, want %q", tty, err, first, want)
		}
	}
}
