// The aws-cni plugin: see plugin/vpc. It is started by the container runtime, once
// for each command.
package main

import (
	"os"
	"time"

	"cnictl/plugin/vpc"
)

// version is set by the build (-X main.version=...); empty in a source build.
var version string

func main() {
	p := vpc.Process{
		Getenv: os.Getenv, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Now: time.Now, Version: version,
	}
	os.Exit(p.Run())
}
