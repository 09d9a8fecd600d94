package main

import (
	"strings"
	"testing"

	"cnictl/daemon/fleet/fleettest"
	"cnictl/testenv"
	"cnictl/testenv/text/terminal"
	"cnictl/tui/show"
)

// screen is a terminal that runs the real binary.
type screen struct {
	t *testing.T
	*terminal.Terminal
}

// onTerminal starts the tool on a terminal of a given width, with only these variables.
func onTerminal(t *testing.T, columns int, env []string, args ...string) *screen {
	t.Helper()
	x, err := terminal.Start(t.Context(), terminal.Options{
		Columns: columns, Rows: 24, Keep: true, Env: append([]string{"TERM=xterm-256color", "LANG=C.UTF-8", "HOME=" + t.TempDir()}, env...),
	}, binary(t), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Kill)
	return &screen{t, x}
}

// text is everything drawn so far.
func (x *screen) text() string { return x.Drawn() }

// await waits until the screen meets a condition.
func (x *screen) await(what string, want func(drawn string) bool) {
	x.t.Helper()
	if err := x.AwaitDrawn(testenv.Context(x.t), 0, want); err != nil {
		x.t.Fatalf("%s: %v\nof %q", what, err, x.text())
	}
}

// press sends keys.
func (x *screen) press(keys string) {
	x.t.Helper()
	if err := x.Press(keys); err != nil {
		x.t.Fatal(err)
	}
}

// resize changes the size of the terminal.
func (x *screen) resize(columns, rows int) {
	x.t.Helper()
	if err := x.Resize(columns, rows); err != nil {
		x.t.Fatal(err)
	}
}

// end waits for the tool to exit and returns its exit code.
func (x *screen) end() int {
	x.t.Helper()
	code, err := x.Ended(testenv.Context(x.t))
	if err != nil {
		x.t.Fatal(err)
	}
	return code
}

func holds(part string, times int) func(string) bool {
	return func(drawn string) bool { return strings.Count(drawn, part) >= times }
}

// Escape sequences.
const (
	alternateScreen = "\x1b[?1049h"
	formerScreen    = "\x1b[?1049l"
	beginOfFrame    = "\x1b[?2026h"
	ctrlC           = "\x03"
)

// TestTerminal_Screens: without arguments on a terminal, the tool opens its screens. q and
// Ctrl-C leave them, and the terminal is restored.
func TestTerminal_Screens(t *testing.T) {
	t.Parallel()
	target := "CNICTL_TARGETS=the-node=" + fleettest.Serve(t, t.TempDir(), "n", fleettest.Secondary())
	for _, key := range []string{"q", ctrlC} {
		x := onTerminal(t, 120, []string{target})
		x.await("the screen", holds(alternateScreen, 1))
		x.await("the node", holds("the-node", 1))
		x.press(key)
		if code := x.end(); code != 0 || !strings.Contains(x.text(), formerScreen) {
			t.Errorf("%q: exit %d, %q", key, code, x.text())
		}
	}
}

// TestTerminal_Recording: --replay without a command opens the recording on the screens, as tui
// with --replay does; so does replay.
func TestTerminal_Recording(t *testing.T) {
	t.Parallel()
	const file = "../../docs/tour.cnirec"
	for _, args := range [][]string{{"--replay", file}, {"--replay", file, "--at", "+1m"}, {"tui", "subnets", "--replay", file}, {"replay", file}} {
		x := onTerminal(t, 120, nil, args...)
		x.await("the screen", holds(alternateScreen, 1))
		x.await("the recording", holds("prod-eu (recording)", 1))
		x.press(ctrlC)
		if code := x.end(); code != 0 || !strings.Contains(x.text(), formerScreen) {
			t.Errorf("%q: exit %d, %q", args, code, x.text())
		}
	}
}

// TestTerminal_Watch: --watch draws in place or prints rows, without clearing the screen,
// until Ctrl-C, which exits with 0.
func TestTerminal_Watch(t *testing.T) {
	t.Parallel()
	target := "--targets=the-node=" + fleettest.Serve(t, t.TempDir(), "n", fleettest.Secondary())
	for _, tt := range []struct {
		command, part string
		times         int
	}{{"status", beginOfFrame, 2}, {"top", beginOfFrame, 1}, {"nodes", "the-node", 1}} {
		t.Run(tt.command, func(t *testing.T) {
			t.Parallel()
			x := onTerminal(t, 100, nil, tt.command, "-w", "--interval=2s", target)
			x.await(tt.part, holds(tt.part, tt.times))
			x.press(ctrlC)
			if code := x.end(); code != 0 || strings.Contains(x.text(), alternateScreen) {
				t.Errorf("exit %d, %q", code, x.text())
			}
		})
	}
}

// TestTerminal_Colour: a terminal gets colours unless it or its user disables them.
func TestTerminal_Colour(t *testing.T) {
	t.Parallel()
	target := "--targets=the-node=" + fleettest.Serve(t, t.TempDir(), "n", fleettest.Secondary())
	for env, want := range map[string]bool{"X=": true, "NO_COLOR=1": false, "CLICOLOR=0": false, "TERM=dumb": false} {
		x := onTerminal(t, 100, []string{env}, "status", target)
		if code := x.end(); code != 0 || strings.Contains(x.text(), "\x1b[") != want {
			t.Errorf("%s: exit %d, %q", env, code, x.text())
		}
	}
}

// TestTerminal_Width: lines fit the terminal, and a wide terminal shows more.
func TestTerminal_Width(t *testing.T) {
	t.Parallel()
	address := fleettest.Serve(t, t.TempDir(), "n", fleettest.Starved())
	target := "--targets=ip-10-0-3-17.eu-west-1.compute.internal=" + address
	for _, command := range []string{"status", "nodes", "enis", "ips"} {
		widest := 0
		for _, width := range []int{60, 200} {
			x := onTerminal(t, width, []string{"NO_COLOR=1"}, command, target)
			if code := x.end(); code != 0 {
				t.Errorf("%s: exit %d, %q", command, code, x.text())
			}
			most := 0
			for line := range strings.Lines(x.text()) {
				line = strings.TrimRight(line, "\r\n")
				most = max(most, show.Width(line))
				if show.Width(line) > width {
					t.Errorf("%s: a line of %d on a terminal of %d: %q", command, show.Width(line), width, line)
				}
			}
			if most <= widest {
				t.Errorf("%s: at most %d cells on a terminal of %d", command, most, width)
			}
			widest = most
		}
	}
}
