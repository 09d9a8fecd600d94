// The egress-cni plugin: see plugin/egress. The container runtime starts it once for each
// command; like aws-cni it does not look up the CPU quota of the runtime's cgroup.
//
//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0
package main

import (
	"context"
	"os"
	"time"

	"cnictl/plugin/egress"
)

// version is set by the build (-X main.version=...); empty in a source build.
var version string

func main() {
	p := egress.Process{
		Getenv: os.Getenv, Environ: os.Environ,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Now: time.Now, Version: version,
	}
	os.Exit(p.Run(context.Background()))
}
