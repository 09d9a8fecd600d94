// Command aws-k8s-agent is ipamd: the daemon that runs once on every node, keeps
// the node's pool of VPC addresses filled and gives them to the CNI plugin.
//
// It reads its settings from the environment (docs/configuration.md) and takes no
// arguments besides --version and --help.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"cnictl/daemon/config"
	"cnictl/daemon/ipamd"
)

// version is set by the linker.
var version = ""

const usage = `aws-k8s-agent gives VPC addresses to the pods of this node.

Usage: aws-k8s-agent [--version | --help]

Settings come from environment variables; docs/configuration.md lists them.
Sockets: /var/run/aws-node/ipamd.sock (gRPC), /var/run/aws-node/cni.sock (plugin).
`

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	started := time.Now()
	switch {
	case len(args) == 1 && args[0] == "--version":
		fmt.Println("aws-k8s-agent " + version)
		return 0
	case len(args) == 1 && (args[0] == "--help" || args[0] == "-h"):
		fmt.Print(usage)
		return 0
	case len(args) > 0:
		fmt.Fprintf(os.Stderr, "aws-k8s-agent: unknown argument %q\n%s", args[0], usage)
		return 2
	}

	c, problems := config.Load(os.LookupEnv)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	err := ipamd.Run(ctx, ipamd.Deps{Config: c, Problems: problems, Version: version, Started: started})
	if err != nil {
		fmt.Fprintln(os.Stderr, "aws-k8s-agent:", err)
		return 1
	}
	return 0
}
