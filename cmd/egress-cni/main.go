// The egress-cni plugin: see plugin/egress. Like aws-cni it is started by the container
// runtime, once for each command, and built of as little as possible.
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

	"cnictl/plugin/egress"
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

// random asks the kernel; so few bytes come whole.
func random(b []byte) error {
	for {
		_, err := unix.Getrandom(b, 0)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func main() {
	p := egress.Process{
		Getenv: func(key string) string {
			value, _ := syscall.Getenv(key)
			return value
		},
		Environ: syscall.Environ,
		Stdin:   stream(0), Stdout: stream(1), Stderr: stream(2),
		Now: time.Now, Random: random, Version: version,
	}
	unix.Exit(p.Run())
}
