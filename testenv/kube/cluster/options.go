package cluster

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
)

// Options configure a cluster.
type Options struct {
	// Dir holds all files of the cluster. It must exist, be empty, have a short path
	// and be on a file system that can be the upper layer of an overlay. Required.
	Dir string

	// Binaries is the directory of this project's programs, in a checkout in which make
	// images was run and helm is built. Required.
	Binaries string

	// Nodes are the workers. Required.
	Nodes []NodeOptions

	// Env changes the environment of the CNI; an empty value removes a variable.
	Env map[string]string

	// IPv6 makes an IPv6 cluster: pods and Services have only IPv6 addresses, nodes have
	// both families. The CNI is configured as EKS does in this case.
	IPv6 bool

	// ProxyMode is kube-proxy's: "iptables" (default) or "nftables".
	ProxyMode string

	// Progress receives a line for each step. Default: discarded.
	Progress io.Writer
}

// NodeOptions configure one node.
type NodeOptions struct {
	Type string // instance type; default m5.large
	IPv6 bool   // gives the node an IPv6 address, in an IPv4 cluster too
}

// ipv6Env is what EKS sets for an IPv6 cluster.
var ipv6Env = map[string]string{"ENABLE_IPv4": "false", "ENABLE_IPv6": "true", "ENABLE_PREFIX_DELEGATION": "true"}

// defaultType has 3 ENIs of 10 addresses: 29 pods.
const defaultType = "m5.large"

func (o *Options) check() error {
	switch {
	case o.Dir == "":
		return errors.New("no directory")
	case o.Binaries == "":
		return errors.New("no directory of programs")
	case len(o.Nodes) == 0:
		return errors.New("no nodes")
	case os.Geteuid() != 0:
		return errors.New("a cluster needs root: containers have cgroups")
	}
	switch o.ProxyMode {
	case "":
		o.ProxyMode = "iptables"
	case "iptables", "nftables":
	default:
		return fmt.Errorf("kube-proxy has no mode %q here: iptables or nftables", o.ProxyMode)
	}
	if o.IPv6 {
		env := maps.Clone(ipv6Env)
		maps.Copy(env, o.Env)
		o.Env = env
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	for _, p := range []*string{&o.Dir, &o.Binaries} {
		abs, err := filepath.Abs(*p)
		if err != nil {
			return err
		}
		*p = abs
	}
	return nil
}
