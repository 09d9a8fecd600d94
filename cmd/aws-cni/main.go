// The aws-cni plugin: see plugin/vpc. The container runtime starts it once for each command,
// so it links as little as possible: neither os nor fmt. It also stops the Go runtime from
// looking up the CPU quota of the container runtime's cgroup, which takes as long as a
// request to the daemon.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0
package main

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/plugin/skel"
	"cnictl/plugin/vpc"
)

// version is set by the build (-X main.version=...); empty in a source build.
var version string

func main() {
	p := vpc.Process{
		Getenv: func(key string) string {
			value, _ := syscall.Getenv(key)
			return value
		},
		Stdin: skel.Stdin, Stdout: skel.Stdout, Stderr: skel.Stderr,
		Now: time.Now, Version: version,
	}
	unix.Exit(p.Run())
}
