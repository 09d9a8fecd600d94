package terminal

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"cnictl/testenv"
	"cnictl/testenv/leftover"
)

func TestMain(m *testing.M) { leftover.Main(m) }

// run starts a shell on a terminal.
func run(t *testing.T, o Options, script string) *Terminal {
	t.Helper()
	o.Columns, o.Rows, o.Keep = 40, 5, true
	o.Env = []string{"PATH=/usr/bin:/bin", "TERM=xterm-256color"}
	x, err := Start(t.Context(), o, "/bin/sh", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Kill)
	return x
}

func has(text string) func(*Screen) bool {
	return func(s *Screen) bool { return strings.Contains(s.String(), text) }
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	x := run(t, Options{}, `test -t 0 && stty size && read -r line && echo "read $line" && exit 3`)
	if err := x.Await(testenv.Context(t), 0, has("5 40")); err != nil {
		t.Fatal(err)
	}
	if took, err := x.Expect(testenv.Context(t), "abc\r", 0, has("read abc")); err != nil || took <= 0 {
		t.Errorf("%v, %v", took, err)
	}
	if code, err := x.Ended(testenv.Context(t)); code != 3 || err != nil {
		t.Errorf("exit %d, %v", code, err)
	}
	if cooked, err := x.Cooked(); !cooked || err != nil {
		t.Errorf("cooked: %v, %v", cooked, err)
	}
	if got := x.Drawn(); got != "5 40\r\nabc\r\nread abc\r\n" {
		t.Errorf("drawn %q", got)
	}
	if err := x.Await(testenv.Context(t), 0, has("more")); !errors.Is(err, ErrEnded) || !strings.Contains(err.Error(), "read abc") {
		t.Errorf("of a program that has ended: %v", err)
	}
}

// TestTerminal_LastBytes: output that a program writes right before it exits is seen.
func TestTerminal_LastBytes(t *testing.T) {
	t.Parallel()
	for range 20 {
		x := run(t, Options{}, `printf last`)
		if err := x.AwaitDrawn(testenv.Context(t), 0, func(drawn string) bool { return drawn == "last" }); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTerminal_Resize(t *testing.T) {
	t.Parallel()
	x := run(t, Options{}, `trap 'stty size' WINCH; echo ready; while :; do sleep 0.1; done`) // a signal right before a read would wait for its end
	if err := x.Await(testenv.Context(t), 0, has("ready")); err != nil {
		t.Fatal(err)
	}
	if err := x.Resize(30, 7); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Expect(testenv.Context(t), "", 0, func(s *Screen) bool { return has("7 30")(s) && s.Height() == 7 }); err != nil {
		t.Error(err)
	}
}

// TestTerminal_NotSeen: if the expected text does not appear, the error shows the screen.
func TestTerminal_NotSeen(t *testing.T) {
	t.Parallel()
	x := run(t, Options{}, `echo here; read -r line`)
	if err := x.Await(testenv.Context(t), 0, has("here")); err != nil {
		t.Fatal(err)
	}
	if err := x.Await(t.Context(), time.Millisecond, has("there")); err == nil || !strings.Contains(err.Error(), "after 1ms; the screen:\nhere") {
		t.Errorf("%v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := x.Await(ended, 0, has("there")); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := x.Ended(ended); err == nil {
		t.Error("it has ended")
	}
}

// TestTerminal_Raw: a raw terminal returns only the output of cat, without an echo.
func TestTerminal_Raw(t *testing.T) {
	t.Parallel()
	x := run(t, Options{Raw: true}, `exec cat`)
	if _, err := x.AwaitBytes(testenv.Context(t), "x", 0, 0); err != nil {
		t.Error(err)
	}
	if cooked, err := x.Cooked(); cooked || err != nil {
		t.Errorf("cooked: %v, %v", cooked, err)
	}
	if frames, bytes := x.Counts(); frames != 0 || bytes != 1 {
		t.Errorf("%d frames, %d bytes", frames, bytes)
	}
}

func TestTerminal_Close(t *testing.T) {
	t.Parallel()
	// A shell misses a signal that arrives before it starts to read, so it sleeps briefly.
	x := run(t, Options{}, `trap 'exit 0' INT; echo ready; while :; do sleep 0.2; done`)
	if err := x.Await(testenv.Context(t), 0, has("ready")); err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Start(t.Context(), Options{Columns: 1, Rows: 1}, "/no/such/program"); err == nil {
		t.Error("what is not there was started")
	}
}

// The program can be interrupted also when the tests cannot, as in the background of a script.
func TestTerminal_Ignored(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `trap '' INT HUP; exec "$0" "$@"`, os.Args[0], "-test.run=^TestTerminal_Close$")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
