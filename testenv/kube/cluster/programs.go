package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"cnictl/testenv/kube/kubeapi"
)

// programs maps the names of the cluster's programs to their paths.
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
	helm              = "helm"
)

// locate finds all programs before any is started.
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
	if found[helm], err = exec.LookPath(Helm(binaries)); err != nil {
		return nil, fmt.Errorf("find helm (make cluster builds it): %w", err)
	}
	for _, file := range archives(binaries) {
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("find %s (make images-here packs it): %w", filepath.Base(file), err)
		}
	}
	return found, nil
}

// checkout returns the directory in which the programs were built.
func checkout(binaries string) string { return filepath.Dir(binaries) }

// Helm returns the path of the helm that the checkout pins.
func Helm(binaries string) string { return filepath.Join(checkout(binaries), ".cache/tools", helm) }

// Chart returns the directory of the CNI's chart.
func Chart(binaries string) string {
	return filepath.Join(checkout(binaries), "deploy/chart/aws-vpc-cni")
}

// archives are the images that every node gets: the cluster's and the CNI's.
func archives(binaries string) []string {
	return []string{
		filepath.Join(binaries, pauseArchive), filepath.Join(binaries, probeArchive),
		filepath.Join(binaries, "aws-vpc-cni-init.tar"), filepath.Join(binaries, "aws-vpc-cni.tar"),
	}
}

// Missing returns an error that names a missing program or image of a cluster, nil if none.
func Missing(binaries string) error {
	if _, err := kubeapi.ProgramDir(); err != nil {
		return err
	}
	_, err := locate(binaries)
	return err
}
