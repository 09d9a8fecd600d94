package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"syscall"
	"time"
)

// measured runs a test binary on behalf of `go test -exec`. Its last line of output is the
// CPU time of the binary and of the children that it waited for. It returns the exit status.
func measured(args []string, stdout, stderr io.Writer) int {
	state, err := runSignalled(args)
	if err != nil {
		fmt.Fprintln(stderr, "testlayers:", err)
		return 2
	}
	fmt.Fprintf(stdout, "%s%s\n", cpuPrefix, cpuTime(state))
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// runSignalled runs a command to its end, and forwards the signals that ask it to end.
func runSignalled(args []string) (*os.ProcessState, error) {
	if len(args) == 0 {
		return nil, errors.New("-measured needs a command")
	}
	// The kernel kills the child when the thread that started it ends.
	runtime.LockOSThread()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	signals := make(chan os.Signal, 8)
	// With SIGQUIT, go test asks a test that takes too long for its goroutines.
	signal.Notify(signals, syscall.SIGQUIT, syscall.SIGINT, syscall.SIGTERM)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start test binary: %w", err)
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s) // it may have ended already
		}
	}()
	err := cmd.Wait()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return nil, fmt.Errorf("wait for test binary: %w", err)
	}
	return cmd.ProcessState, nil
}

// cpuTime returns the CPU time of a process and of all children that were waited for.
func cpuTime(s *os.ProcessState) time.Duration { return s.UserTime() + s.SystemTime() }

const cpuPrefix = "testlayers: CPU time "

var cpuLine = regexp.MustCompile(`^` + cpuPrefix + `(\S+)\n$`)
