package terminal

import (
	"errors"
	"strings"
	"testing"

	"cnictl/testenv"
	"cnictl/testenv/rules/leftover"
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
