package main

import (
	"io"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// Roles of a process, in the environment.
const (
	watchdogVar = "CNICTL_DEMO_WATCHDOG"
	watchdogIs  = "is"  // is the watchdog
	watchdogHas = "has" // has a watchdog
)

// leaveScreens leaves the alternate screen, shows the cursor, ends mouse reports and bracketed
// paste, and resets colours.
const leaveScreens = "\x1b[?1049l\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[0m"

// settle is how long processes that die with the demo may still draw.
const settle = 200 * time.Millisecond

// guardTerminal starts a process that outlives the demo, even if the demo is killed with
// SIGKILL, and then restores the terminal. lifeline closes with the last process that holds it.
func guardTerminal() (lifeline *os.File, err error) {
	if os.Getenv(watchdogVar) != "" || !onTerminal() {
		return nil, nil
	}
	hold, lifeline, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer hold.Close()
	cmd := exec.Command("/proc/self/exe") //nolint:noctx // it must outlive the demo
	cmd.Env = append(os.Environ(), watchdogVar+"="+watchdogIs)
	cmd.Stdin, cmd.Stdout, cmd.ExtraFiles = os.Stdin, os.Stdout, []*os.File{hold}
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true} // it must not get Ctrl-C
	if err := cmd.Start(); err != nil {
		lifeline.Close()
		return nil, err
	}
	return lifeline, os.Setenv(watchdogVar, watchdogHas)
}

// maybeWatchdog runs the watchdog if this process is one. The watchdog records the terminal's
// state and restores it if the demo ends without doing so.
func maybeWatchdog() {
	if os.Getenv(watchdogVar) != watchdogIs {
		return
	}
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGTTOU, unix.SIGTTIN, unix.SIGPIPE)
	const terminal, lifeline = 0, 3
	before, err := unix.IoctlGetTermios(terminal, unix.TCGETS)
	_, _ = io.Copy(io.Discard, os.NewFile(lifeline, "lifeline")) // until all processes have closed it
	if err != nil {
		os.Exit(1)
	}
	<-time.After(settle)
	if now, err := unix.IoctlGetTermios(terminal, unix.TCGETS); err == nil && now.Lflag != before.Lflag {
		// The screens were open. If the terminal is gone, there is nothing left to do.
		_ = unix.IoctlSetTermios(terminal, unix.TCSETS, before)
		_, _ = os.Stdout.WriteString(leaveScreens)
	}
	os.Exit(0)
}
