package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"cnictl/testenv/kubeapi"
	"cnictl/testenv/node"
)

// programs are the paths of what a cluster runs, by name.
type programs map[string]string

// Names of programs.
const (
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	kubelet           = "kubelet"
	kubeProxy         = "kube-proxy"
	containerd        = "containerd"
	shim              = "containerd-shim-runc-v2"
	ctr               = "ctr"
	crun              = "crun"
)

// locate finds everything before anything is started.
func locate(binaries string) (programs, error) {
	cache, err := kubeapi.ProgramDir()
	if err != nil {
		return nil, err
	}
	found := programs{}
	for _, name := range []string{controllerManager, scheduler, kubelet, kubeProxy, containerd, shim, ctr} {
		if found[name], err = exec.LookPath(filepath.Join(cache, name)); err != nil {
			return nil, fmt.Errorf("find %s (tools/kube/build.sh cluster gets it): %w", name, err)
		}
	}
	if found[crun], err = exec.LookPath(crun); err != nil {
		return nil, fmt.Errorf("find crun (make deps installs it): %w", err)
	}
	for _, name := range []string{
		node.DaemonBinary, node.PluginBinary, grpcProgram, node.EntrypointBinary, initProgram, egressProgram, probe, portmapProgram,
		"reference/portmap",
	} {
		if found[name], err = exec.LookPath(filepath.Join(binaries, name)); err != nil {
			return nil, fmt.Errorf("find %s (make build reference puts it there): %w", name, err)
		}
	}
	for _, name := range []string{pauseArchive, probeArchive} {
		found[name] = filepath.Join(binaries, name)
		if _, err := os.Stat(found[name]); err != nil {
			return nil, fmt.Errorf("find %s (make testimages puts it there): %w", name, err)
		}
	}
	return found, nil
}

// Missing says what of the programs of a cluster is not there, nil if nothing.
func Missing(binaries string) error {
	if _, err := kubeapi.ProgramDir(); err != nil {
		return err
	}
	_, err := locate(binaries)
	return err
}
