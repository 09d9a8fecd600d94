// Peak runs a program and prints its peak memory in KiB on stderr. The kernel starts a
// child's count at its parent's memory at the fork, so the parent must be smaller than
// the program it measures. Standard input and output are the program's.
//
//	peak PROGRAM [ARGUMENT...]    last line on stderr: peak_kib=N
//
// The exit code is the program's, or 126 if it cannot be run.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0
package main

import (
	"errors"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

func main() { unix.Exit(run()) }

func run() int {
	args := arguments()
	if len(args) < 2 {
		return fail("usage: peak PROGRAM [ARGUMENT...]")
	}
	pid, err := syscall.ForkExec(args[1], args[1:], &syscall.ProcAttr{Env: syscall.Environ(), Files: []uintptr{0, 1, 2}})
	if err != nil {
		return fail("run " + args[1] + ": " + err.Error())
	}
	var status unix.WaitStatus
	var used unix.Rusage
	for {
		if _, err = unix.Wait4(pid, &status, 0, &used); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return fail("wait for " + args[1] + ": " + err.Error())
	}
	_, _ = unix.Write(2, []byte("\npeak_kib="+strconv.FormatInt(used.Maxrss, 10)+"\n"))
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// arguments returns the process's arguments without package os, which itself costs memory.
func arguments() []string {
	fd, err := unix.Open("/proc/self/cmdline", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	var args []string
	var arg []byte
	buf := make([]byte, 4096)
	for {
		n, err := unix.Read(fd, buf)
		if err != nil || n == 0 {
			return args
		}
		for _, b := range buf[:n] {
			if b != 0 {
				arg = append(arg, b)
				continue
			}
			args, arg = append(args, string(arg)), arg[:0]
		}
	}
}

func fail(text string) int {
	_, _ = unix.Write(2, []byte("peak: "+text+"\n"))
	return 126
}
