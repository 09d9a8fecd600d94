package main

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/daemon/fleet/fleettest"
	"cnictl/daemon/fleet/show"
)

// patience is how long a test waits for what must come.
const patience = 30 * time.Second

// terminal is a pseudo-terminal with the real binary on it, and all that it drew.
type terminal struct {
	t      *testing.T
	master *os.File
	cmd    *exec.Cmd
	ended  chan error

	mu    sync.Mutex // guards drawn
	drawn bytes.Buffer
}

// onTerminal starts the tool on a terminal of a size, with these variables and no others of
// its own.
func onTerminal(t *testing.T, columns uint16, env []string, args ...string) *terminal {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	master := os.NewFile(uintptr(fd), "/dev/ptmx")
	t.Cleanup(func() { master.Close() })
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns})
	}
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	home := t.TempDir()
	x := &terminal{t: t, master: master, ended: make(chan error, 1)}
	x.cmd = exec.CommandContext(t.Context(), binary(t), args...)
	x.cmd.Env = append([]string{"TERM=xterm-256color", "LANG=C.UTF-8", "HOME=" + home}, env...)
	x.cmd.Stdin, x.cmd.Stdout, x.cmd.Stderr = slave, slave, slave
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := x.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go x.read()
	return x
}

// read keeps what is drawn until the other side is closed.
func (x *terminal) read() {
	buf := make([]byte, 1<<16)
	for {
		n, err := x.master.Read(buf)
		x.mu.Lock()
		x.drawn.Write(buf[:n])
		x.mu.Unlock()
		if err != nil {
			x.ended <- x.cmd.Wait()
			return
		}
	}
}

func (x *terminal) text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.drawn.String()
}

// await waits until what was drawn is as wanted.
func (x *terminal) await(what string, want func(drawn string) bool) {
	x.t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for late := time.After(patience); !want(x.text()); {
		select {
		case <-look.C:
		case <-late:
			x.t.Fatalf("%s does not come: %q", what, x.text())
		}
	}
}

// press writes keys.
func (x *terminal) press(keys string) {
	x.t.Helper()
	if _, err := x.master.WriteString(keys); err != nil {
		x.t.Fatal(err)
	}
}

// end waits for the end of the tool and returns its exit code.
func (x *terminal) end() int {
	x.t.Helper()
	select {
	case <-x.ended:
		return x.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		x.t.Fatalf("it goes on: %q", x.text())
		return -1
	}
}

func holds(part string, times int) func(string) bool {
	return func(drawn string) bool { return strings.Count(drawn, part) >= times }
}

// What a terminal is told.
const (
	alternateScreen = "\x1b[?1049h"
	formerScreen    = "\x1b[?1049l"
	beginOfFrame    = "\x1b[?2026h"
	ctrlC           = "\x03"
)

// TestTerminal_Screens: alone on a terminal the tool opens its screens, q and Ctrl-C leave
// them, and the terminal is as before.
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

// TestTerminal_Watch: what is watched is drawn in place or told in rows, on the screen that
// there was, until Ctrl-C, which is a good end.
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

// TestTerminal_Colour: a terminal gets colours, unless it or its user wants none.
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

// TestTerminal_Width: lines fit the terminal, and a wide one shows more.
func TestTerminal_Width(t *testing.T) {
	t.Parallel()
	address := fleettest.Serve(t, t.TempDir(), "n", fleettest.Starved())
	target := "--targets=ip-10-0-3-17.eu-west-1.compute.internal=" + address
	for _, command := range []string{"status", "nodes", "enis", "ips"} {
		widest := 0
		for _, width := range []uint16{60, 200} {
			x := onTerminal(t, width, []string{"NO_COLOR=1"}, command, target)
			if code := x.end(); code != 0 {
				t.Errorf("%s: exit %d, %q", command, code, x.text())
			}
			most := 0
			for line := range strings.Lines(x.text()) {
				line = strings.TrimRight(line, "\r\n")
				most = max(most, show.Width(line))
				if show.Width(line) > int(width) {
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
