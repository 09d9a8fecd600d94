// The egress-cni plugin: see plugin/egress. Like aws-cni it is started by the container
// runtime, once for each command, and built of as little as possible.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0
package main

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/plugin/egress"
	"cnictl/plugin/skel"
)

// version is set by the build (-X main.version=...); empty in a source build.
var version string

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
		Stdin:   skel.Stdin, Stdout: skel.Stdout, Stderr: skel.Stderr,
		Now: time.Now, Random: random, Version: version,
	}
	unix.Exit(p.Run())
}
