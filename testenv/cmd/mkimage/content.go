package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"cnictl/capacity/limits"
	"cnictl/capacity/maxpods"
	"cnictl/daemon/install"
	"cnictl/plugin/portmap"
)

// image says what an image has. Paths in it are those of upstream's images, which
// manifests and tools name.
type image struct {
	name    string
	workdir string
	program string // in workdir, the first process
	layers  []func(sources) ([]entry, error)
}

func images() []image {
	return []image{
		{"aws-vpc-cni", "/app", "aws-vpc-cni", []func(sources) ([]entry, error){others, app}},
		{"aws-vpc-cni-init", "/init", "aws-vpc-cni-init", []func(sources) ([]entry, error){initial}},
	}
}

// others are the programs that the daemon starts, with what they and it need.
func others(from sources) ([]entry, error) { return tree(from.root) }

// app are our programs of the container aws-node.
func app(from sources) ([]entry, error) {
	out := []entry{
		{name: "app/10-aws.conflist", mode: 0o644, data: []byte(install.Template)},
		{name: "app/eni-max-pods.txt", mode: 0o644, data: []byte(maxPods())},
	}
	for _, name := range []string{"aws-cni", "aws-cni-grpc", "aws-k8s-agent", "aws-vpc-cni", "egress-cni", "grpc-health-probe"} {
		e, err := file(filepath.Join(from.bin, name), "app/"+name, 0o755)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	// On PATH, as the far end of --via exec calls it.
	tool, err := file(filepath.Join(from.bin, "cnictl"), "usr/bin/cnictl", 0o755)
	if err != nil {
		return nil, err
	}
	license, err := file(from.license, "app/LICENSE", 0o644)
	return append(out, tool, license), err
}

// initial is all of the init image: what it copies to the node, and itself.
func initial(from sources) ([]entry, error) {
	plugins, err := referencePlugins(from)
	if err != nil {
		return nil, err
	}
	license, err := file(from.license, "init/LICENSE", 0o644)
	if err != nil {
		return nil, err
	}
	support, err := file(from.support, "init/aws-cni-support.sh", 0o755)
	if err != nil {
		return nil, err
	}
	out := append(plugins, license, support)
	for _, name := range []string{"aws-vpc-cni-init", portmapProgram} {
		e, err := file(filepath.Join(from.bin, name), "init/"+name, 0o755)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

const portmapProgram = "portmap"

// referencePlugins are those of others. Ours stands before one of them.
func referencePlugins(from sources) ([]entry, error) {
	plugins, err := tree(from.reference)
	if err != nil {
		return nil, err
	}
	found := false
	for i, e := range plugins {
		if e.mode&0o111 == 0 || e.link != "" || e.dir || strings.Contains(e.name, "/") {
			return nil, fmt.Errorf("%s is not a plugin", filepath.Join(from.reference, e.name))
		}
		if e.name == portmapProgram {
			found, e.name = true, portmap.Reference
		}
		plugins[i].name = path.Join("init", e.name)
	}
	if !found {
		return nil, fmt.Errorf("no %s in %s; run: make reference", portmapProgram, from.reference)
	}
	return plugins, nil
}

func file(from, name string, mode int64) (entry, error) {
	data, err := os.ReadFile(from)
	if err != nil {
		return entry{}, fmt.Errorf("%w; run: make build", err)
	}
	return entry{name: name, mode: mode, data: data}, nil
}

// maxPods is the list that tools of nodes read: a type and its most pods per line.
func maxPods() string {
	var b strings.Builder
	b.WriteString("# Pods per instance type: ENIs * (IPv4 addresses of each - 1) + 2\n")
	for name := range limits.Types() {
		if n, ok := maxpods.FileRule(name); ok {
			fmt.Fprintf(&b, "%s %d\n", name, n)
		}
	}
	return b.String()
}
