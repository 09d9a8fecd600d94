// Command aws-vpc-cni-init prepares a node for the daemon: it installs the plugins from its
// own directory and sets the node's kernel parameters. It is the init container of aws-node
// and runs privileged in the node's network namespace.
//
// It reads its settings from the environment (docs/configuration.md). Its only arguments are
// --version and --help. Exit status: 0 on success, 1 otherwise.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"cnictl/daemon/config"
	"cnictl/daemon/nodeinit"
)

// version is set by the linker.
var version = ""

const usage = `aws-vpc-cni-init installs CNI plugins on a node and sets its kernel parameters.

Usage: aws-vpc-cni-init [--version | --help]

Settings come from environment variables; docs/configuration.md lists them. Every
regular file of the working directory but itself is copied to HOST_CNI_BIN_PATH.
`

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	switch {
	case len(args) == 1 && args[0] == "--version":
		fmt.Println("aws-vpc-cni-init " + version)
		return 0
	case len(args) == 1 && (args[0] == "--help" || args[0] == "-h"):
		fmt.Print(usage)
		return 0
	case len(args) > 0:
		fmt.Fprintf(os.Stderr, "aws-vpc-cni-init: unknown argument %q\n%s", args[0], usage)
		return 1
	}
	c, problems := config.Load(os.LookupEnv)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := nodeinit.Run(ctx, nodeinit.Deps{Config: c, Problems: problems, Log: os.Stderr}); err != nil {
		return 1 // already logged
	}
	return 0
}
