package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"cnictl/deploy"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/network/vpc"
)

// Options describe a node.
type Options struct {
	Fabric     *vpc.Fabric    // required
	World      *fakeaws.World // required: the fabric's world
	InstanceID string         // required: an instance in World

	// Dir holds the node's files: logs, CNI directories. It must exist, belong only to this
	// node and have a short path (it may contain Unix sockets). Required.
	Dir string

	// Binaries is the directory of the programs under test, "aws-k8s-agent" and
	// "aws-cni". CNI_PATH is set to it.
	Binaries string

	// Name is the node's host name. Default: the instance id.
	Name string

	// Capabilities are all that the daemon has, named as in a pod's manifest.
	// Default: those of deploy/aws-node.yaml.
	Capabilities []string
}

func (o *Options) check() error {
	switch {
	case o.Fabric == nil:
		return errors.New("no fabric")
	case o.World == nil:
		return errors.New("no world")
	case o.InstanceID == "":
		return errors.New("no instance")
	case o.Dir == "":
		return errors.New("no directory")
	}
	if o.Name == "" {
		o.Name = o.InstanceID
	}
	if o.Capabilities == nil {
		granted, err := deploy.Capabilities()
		if err != nil {
			return err
		}
		o.Capabilities = granted
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return fmt.Errorf("directory: %w", err)
	}
	o.Dir = dir
	if o.Binaries != "" {
		if o.Binaries, err = filepath.Abs(o.Binaries); err != nil {
			return fmt.Errorf("binaries: %w", err)
		}
	}
	for _, p := range o.paths().all() {
		if err := os.MkdirAll(p, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// paths are the node's copies of directories that exist once on a host.
type paths struct{ CNIBin, CNIConf, Logs string }

func (o Options) paths() paths {
	return paths{
		CNIBin:  filepath.Join(o.Dir, "opt-cni-bin"),
		CNIConf: filepath.Join(o.Dir, "cni-net.d"),
		Logs:    filepath.Join(o.Dir, "log"),
	}
}

func (p paths) all() []string { return []string{p.CNIBin, p.CNIConf, p.Logs} }

// hostLogs is the CNI's log directory on a host.
const hostLogs = "/var/log/aws-routed-eni"

// covered maps a node's directories to their paths on a host.
func (p paths) covered() map[string][]string {
	return map[string][]string{
		p.CNIBin:  {"/opt/cni/bin", "/host/opt/cni/bin"},
		p.CNIConf: {"/etc/cni/net.d", "/host/etc/cni/net.d"},
		p.Logs:    {hostLogs, "/host/var/log/aws-routed-eni"},
	}
}
