// The aws-cni plugin: see plugin/vpc. It is started by the container runtime, once
// for each command, so it is built of as little as possible: neither os nor fmt are
// linked, and the runtime is told not to look up the CPU quota of the container
// runtime's cgroup, which takes as long as a whole request to the daemon.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0
package main

import (
	"errors"
	"io"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/plugin/vpc"
)

// version is set by the build (-X main.version=...); empty in a source build.
var version string

// stream is a standard stream.
type stream int

func (s stream) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(int(s), b)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case n == 0 && len(b) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

func (s stream) Write(b []byte) (int, error) {
	n, err := unix.Write(int(s), b)
	return max(n, 0), err
}

func main() {
	p := vpc.Process{
		Getenv: func(key string) string {
			value, _ := syscall.Getenv(key)
			return value
		},
		Stdin: stream(0), Stdout: stream(1), Stderr: stream(2),
		Now: time.Now, Version: version,
	}
	unix.Exit(p.Run())
}
