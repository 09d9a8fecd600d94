// Command aws-vpc-cni is the entrypoint of the aws-node container and its process 1: it
// installs the plugins, starts the daemon aws-k8s-agent, waits until the daemon serves,
// installs the conflist, and exits when the daemon does.
//
// It reads its settings from the environment (docs/configuration.md). Its only arguments are
// --version and --help. Exit status: 0 when the daemon ended cleanly, 1 otherwise.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"cnictl/daemon/config"
	"cnictl/daemon/launch"
)

// version is set by the linker.
var version = ""

const usage = `aws-vpc-cni installs the CNI plugins, runs the daemon aws-k8s-agent and installs the
conflist as soon as the daemon serves. It exits when the daemon does.

Usage: aws-vpc-cni [--version | --help]

Settings come from environment variables; docs/configuration.md lists them. The daemon,
the plugins aws-cni (with aws-cni-grpc) and egress-cni and the template 10-aws.conflist are
taken from the working directory.
`

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	switch {
	case len(args) == 1 && args[0] == "--version":
		fmt.Println("aws-vpc-cni " + version)
		return 0
	case len(args) == 1 && (args[0] == "--help" || args[0] == "-h"):
		fmt.Print(usage)
		return 0
	case len(args) > 0:
		fmt.Fprintf(os.Stderr, "aws-vpc-cni: unknown argument %q\n%s", args[0], usage)
		return 1
	}
	// Process 1 receives only the signals it subscribes to. A signal may arrive before the
	// daemon it is meant for has started; the channel holds it until then.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	c, problems := config.Load(os.LookupEnv)
	err := launch.Run(context.Background(), launch.Deps{
		Config: c, Problems: problems, Signals: signals, Stdout: os.Stdout, Stderr: os.Stderr, Version: version,
	})
	if err != nil {
		return 1 // already logged
	}
	return 0
}
