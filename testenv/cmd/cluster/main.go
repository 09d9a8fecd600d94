// Command cluster runs a multi-node Kubernetes cluster on this machine, with this project's
// CNI, in the background until it is stopped (testenv/kube/cluster).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"cnictl/testenv/cmd/internal/frame"
	"cnictl/testenv/kube/cluster"
	"cnictl/testenv/node"
)

const usage = `cluster runs a Kubernetes cluster of several nodes on this machine: real etcd, API server,
controllers, scheduler, kubelets, containerd and kube-proxy on simulated EC2 instances, with
this project's chart installed. The machine's own network is not touched.

Usage:
  cluster up [--nodes N] [--type T] [--proxy MODE] [--env NAME=VALUE]... [--dir DIR] [--bin DIR]
  cluster down [--dir DIR]

  up      start it in the background and return when all nodes are Ready
  down    stop it and remove its files

  --nodes N          how many nodes (default 3)
  --type T           instance type of every node (default m5.large: 29 pods)
  --proxy MODE       kube-proxy's: iptables (default) or nftables
  --env NAME=VALUE   a value env.NAME of the chart, such as WARM_IP_TARGET=4; may be repeated
  --dir DIR          directory for its files (default: "cluster" in the user's cache)
  --bin DIR          directory of this project's programs (default: that of cluster)

It needs root. The only image for pods is cnictl/podprobe:test, with imagePullPolicy Never.
`

// options are the options of all commands.
type options struct {
	nodes    int
	instance string
	proxy    string
	env      settings
	dir      string
	bin      string
}

// settings is a repeated flag.
type settings map[string]string

func (s settings) String() string { return fmt.Sprint(map[string]string(s)) }

func (s settings) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return errors.New("want NAME=VALUE")
	}
	s[name] = value
	return nil
}

func main() {
	node.MaybeAgent()
	os.Exit(start(os.Args[1:]))
}

func start(args []string) int {
	if len(args) > 0 && (args[0] == "-h" || args[0] == "--help" || args[0] == "help") {
		fmt.Print(usage)
		return 0
	}
	commands := map[string]func(context.Context, options) error{"up": up, "down": down, runCommand: run}
	if len(args) == 0 || commands[args[0]] == nil {
		fmt.Fprint(os.Stderr, usage)
		return 2
	}
	o, err := parse(args[1:])
	if errors.Is(err, flag.ErrHelp) {
		fmt.Print(usage)
		return 0
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "cluster: %v\n\n%s", err, usage)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := commands[args[0]](ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		return 1
	}
	return 0
}

// maxNodes keeps a typo from overloading the machine.
const maxNodes = 20

func parse(args []string) (options, error) {
	o := options{env: settings{}}
	var fs flag.FlagSet
	fs.IntVar(&o.nodes, "nodes", 3, "")
	fs.StringVar(&o.instance, "type", "", "")
	fs.StringVar(&o.proxy, "proxy", "", "")
	fs.Var(o.env, "env", "")
	fs.StringVar(&o.dir, "dir", "", "")
	fs.StringVar(&o.bin, "bin", "", "")
	if err := frame.Parse(&fs, args); err != nil {
		return o, err
	}
	if o.nodes < 1 || o.nodes > maxNodes {
		return o, fmt.Errorf("--nodes %d: from 1 to %d", o.nodes, maxNodes)
	}
	if o.dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return o, fmt.Errorf("find a directory (--dir DIR names one): %w", err)
		}
		o.dir = filepath.Join(cache, "cnictl", "cluster")
	}
	var err error
	if o.bin, err = frame.Bin(o.bin); err != nil {
		return o, err
	}
	o.dir, err = filepath.Abs(o.dir)
	return o, err
}

// cluster returns the cluster that the options describe.
func (o options) cluster() cluster.Options {
	nodes := make([]cluster.NodeOptions, o.nodes)
	for i := range nodes {
		nodes[i].Type = o.instance
	}
	return cluster.Options{
		Dir: o.state("files"), Binaries: o.bin, Nodes: nodes, Env: o.env, ProxyMode: o.proxy, Progress: os.Stdout,
	}
}

// state returns the path of a file in the cluster's directory.
func (o options) state(name string) string { return filepath.Join(o.dir, name) }
