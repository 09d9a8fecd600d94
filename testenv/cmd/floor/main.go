// Floor is the yardstick of make bench: the minimum that a process must do to give a pod its
// network. As a plugin it reads its input, requests an address from a server (one line out,
// one line in, over a Unix socket) and creates the same kernel objects as aws-cni, in
// batched netlink. It writes no log, checks nothing and undoes nothing. It avoids os, fmt and
// everything else with start-up cost, and the runtime's cgroup lookups. Whatever aws-cni needs
// beyond that is the price of being a real plugin.
//
//	floor                       run as a CNI plugin (ADD, DEL)
//	floor                       without CNI_COMMAND: answer addresses 10.100.0.2 and up
//	FLOOR_PEAK=COMMAND floor    run a command, then print peak_kib=N on stderr
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0
package main

import (
	"errors"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

func main() {
	command, _ := syscall.Getenv("CNI_COMMAND")
	measured, measures := syscall.Getenv("FLOOR_PEAK")
	switch {
	case measures:
		peak(strings.Fields(measured))
	case command == "ADD":
		add()
	case command == "DEL":
		del()
	default:
		serve()
	}
}

// check ends the program if there is an error.
func check(err error) {
	if err != nil {
		_, _ = unix.Write(2, []byte("floor: "+err.Error()+"\n"))
		unix.Exit(126)
	}
}

// peak runs a command with this one's streams and environment, and prints its peak memory. The
// kernel starts a child's count at its parent's memory at the fork, so the parent must be smaller
// than the program that it measures. The exit status becomes the program's.
func peak(argv []string) {
	_ = syscall.Unsetenv("FLOOR_PEAK") // the command may be this one
	pid, err := syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{Env: syscall.Environ(), Files: []uintptr{0, 1, 2}})
	check(err)
	var status unix.WaitStatus
	var used unix.Rusage
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		_, err = unix.Wait4(pid, &status, 0, &used)
	}
	check(err)
	_, _ = unix.Write(2, []byte("\npeak_kib="+strconv.FormatInt(used.Maxrss, 10)+"\n"))
	if status.Signaled() {
		unix.Exit(128 + int(status.Signal()))
	}
	unix.Exit(status.ExitStatus())
}
