// Command aws-k8s-agent is ipamd: the daemon that runs once on every node, keeps the node's
// pool of VPC addresses filled and gives them to the CNI plugin.
//
// It reads its settings from the environment (docs/configuration.md). Its only arguments are
// --version, --help, and --uninstall, which removes everything it left on the node.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"cnictl/daemon/config"
	"cnictl/daemon/ipamd"
)

// version is set by the linker.
var version = ""

// memoryLimit is about ten times what the daemon's heap holds on a full node (docs/performance.md).
// The runtime collects garbage before it exceeds this. GOMEMLIMIT overrides it.
const memoryLimit = 128 << 20

const usage = `aws-k8s-agent assigns VPC addresses to the pods of this node.

Usage: aws-k8s-agent [--version | --help]
       aws-k8s-agent --uninstall [--dry-run] [--force] [--wait]

--uninstall removes what the daemon and its plugins left on the node: iptables, ip6tables
  and nft rules, policy rules, addresses and routes of secondary ENIs, branch ENI devices,
  10-aws.conflist, the binaries aws-cni, aws-cni-grpc and egress-cni, egress address leases,
  sockets and state. It keeps logs, kernel settings, other CNI plugins, everything in EC2, and ENIs
  that the node's own network configuration manages. It prints each object and can be
  repeated. docs/uninstall.md describes how to run it on all nodes
  (deploy/uninstall.yaml) or from a shell on one.
  It needs the host's network, /var/run/aws-node, /run/xtables.lock and a writable
  /run/cni (in a container: /host/run/cni). HOST_CNI_BIN_PATH (/host/opt/cni/bin) and
  HOST_CNI_CONFDIR_PATH (/host/etc/cni/net.d) are where plugins and configuration are.
--dry-run prints what would be removed and removes nothing.
--force continues even if a daemon is running or pods use the network, which they lose.
--wait blocks after success until it is stopped, so that its pod is not restarted.
Exit codes of --uninstall: 0 everything was removed, 1 something is left or nothing was
  done (standard error says why), 2 wrong arguments.

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
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if len(args) > 0 {
		flags, err := uninstallFlags(args)
		if err != nil {
			fmt.Fprintf(os.Stderr, "aws-k8s-agent: %v\n%s", err, usage)
			return 2
		}
		code := runUninstall(ctx, os.LookupEnv, flags)
		if flags.wait && code == 0 {
			<-ctx.Done()
		}
		return code
	}

	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	c, problems := config.Load(os.LookupEnv)
	err := ipamd.Run(ctx, ipamd.Deps{Config: c, Problems: problems, Version: version, Started: started})
	if err != nil {
		fmt.Fprintln(os.Stderr, "aws-k8s-agent:", err)
		return 1
	}
	return 0
}
