package main

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cnictl/testenv"
	"cnictl/testenv/kube/fleetsim"
)

// TestTerminal_Ended: if something ends the screens from outside, at any point, the
// terminal is restored and the exit code shows it.
func TestTerminal_Ended(t *testing.T) {
	t.Parallel()
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGHUP) // under nohup, the tool would inherit the ignored SIGHUP
	defer signal.Stop(heard)
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 3, Seed: 1, Churn: -1})
	kubeconfig, err := sim.WriteKubeconfig(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range []struct {
		signal syscall.Signal
		code   int
	}{{syscall.SIGTERM, 143}, {syscall.SIGHUP, 129}, {syscall.SIGINT, 0}} {
		for _, at := range []string{alternateScreen, "ip-10-0-"} {
			x := onTerminal(t, 120, []string{"KUBECONFIG=" + kubeconfig})
			x.await(at, holds(at, 1))
			if err := x.Process().Signal(by.signal); err != nil {
				t.Fatal(err)
			}
			if by.signal != syscall.SIGINT { // timeout(1) signals both program and group; the process may be gone
				_ = x.Process().Signal(by.signal)
			}
			if code := x.end(); code != by.code {
				t.Errorf("%v after %q: exit %d, want %d", by.signal, at, code, by.code)
			}
			if cooked, err := x.Cooked(); !cooked || err != nil {
				t.Errorf("after %v the terminal gives single keys, %v", by.signal, err)
			}
			for _, back := range []string{formerScreen, "\x1b[?25h"} {
				if !strings.Contains(x.text(), back) {
					t.Errorf("after %v no %q", by.signal, back)
				}
			}
		}
	}
}

// silentCluster returns a kubeconfig of an API server that accepts connections and never
// answers. asked returns the connections.
func silentCluster(t *testing.T) (kubeconfig string, asked <-chan net.Conn) {
	t.Helper()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	connections := make(chan net.Conn, 64)
	done := make(chan struct{})
	go func() { // ends with the listener
		defer close(done)
		for {
			c, err := silent.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			connections <- c
		}
	}()
	t.Cleanup(func() {
		silent.Close()
		<-done
	})
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 1, Seed: 1, Churn: -1})
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	text := strings.ReplaceAll(string(sim.Kubeconfig()), sim.URL(), "https://"+silent.Addr().String())
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig, connections
}

// TestTerminal_LeavesUnanswered: ctrl-c also works while an API server leaves the first
// request unanswered. For the screens and for following, that is a normal exit; a command
// that prints once reports the interrupt.
func TestTerminal_LeavesUnanswered(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]struct {
		code int
		said string
	}{
		"tui": {}, "nodes -w": {}, "logs -f": {},
		"nodes": {130, "^Ccnictl: interrupted\r\n"}, "pod a/b": {130, "^Ccnictl: interrupted\r\n"},
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			kubeconfig, asked := silentCluster(t)
			x := onTerminal(t, 120, []string{"KUBECONFIG=" + kubeconfig}, strings.Fields(command)...)
			testenv.Receive(t, "a request to the API server", asked)
			x.press(ctrlC)
			code, said := x.end(), x.text()
			if quiet := !strings.Contains(said, "cnictl"); code != want.code || want.said == "" && !quiet || want.said != "" && said != want.said {
				t.Errorf("exit %d, want %d and %q: %q", code, want.code, want.said, said)
			}
		})
	}
}

// TestProcess_Terminated: a command ended by SIGTERM prints what it has so far, and its exit
// code shows the signal.
func TestProcess_Terminated(t *testing.T) {
	t.Parallel()
	kubeconfig, asked := silentCluster(t)
	var said strings.Builder
	cmd := exec.CommandContext(t.Context(), binary(t), "nodes")
	cmd.Env = []string{"KUBECONFIG=" + kubeconfig, "HOME=" + t.TempDir()}
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	testenv.Receive(t, "a request to the API server", asked)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 143 || said.String() != "cnictl: interrupted\n" {
		t.Errorf("%v, %q", err, said.String())
	}
}
