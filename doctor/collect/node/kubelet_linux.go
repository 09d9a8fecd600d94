package node

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"cnictl/doctor/collect/reading"
	"cnictl/doctor/evidence"
)

// kubeletFiles are where the AMIs keep kubelet's configuration, the usual one first.
var kubeletFiles = []string{"/etc/kubernetes/kubelet/config.json", "/etc/kubernetes/kubelet/kubelet-config.json",
	"/etc/kubernetes/kubelet/config", "/var/lib/kubelet/config.yaml"}

// kubelet reads the configuration that kubelet's process was given: flags override the drop-in
// files, which override the file.
func (c *collector) kubelet(ctx context.Context) (out evidence.Kubelet, _ error) {
	flags := map[string]string{}
	program := "/usr/bin/kubelet"
	list, err := c.processes()
	if err != nil {
		return out, err
	}
	for _, p := range list {
		if p.name == "kubelet" {
			flags, program = flagsOf(p.args[1:]), p.args[0]
		}
	}
	files := kubeletFiles
	if flags["config"] != "" {
		files = []string{flags["config"]}
	}
	for _, file := range files {
		if out.MaxPods, err = c.maxPods(file, flags["config-dir"]); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if n, flagErr := strconv.Atoi(flags["max-pods"]); flagErr == nil {
		out.MaxPods, err = &n, nil
	}
	if err != nil {
		return out, err
	}
	if c.live() && path.IsAbs(program) {
		ctx, cancel := c.spare(ctx)
		defer cancel()
		if printed, err := run(ctx, program, "--version"); err == nil {
			out.Version = strings.TrimPrefix(strings.TrimSpace(printed), "Kubernetes ")
		}
	}
	return out, nil
}

// flagsOf reads --name=value and --name value.
func flagsOf(args []string) map[string]string {
	out := map[string]string{}
	for i, a := range args {
		name, value, ok := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if !ok && i+1 < len(args) {
			value = args[i+1]
		}
		if strings.HasPrefix(a, "-") {
			out[name] = value
		}
	}
	return out
}

// maxPods returns the value in a configuration file and its drop-ins, nil if there is none.
func (c *collector) maxPods(file, drops string) (*int, error) {
	names := []string{file}
	if drops == "" {
		drops = file + ".d" // as nodeadm names it
	}
	entries, err := c.list(drops)
	if ignore(err, fs.ErrNotExist) != nil {
		return nil, err
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".conf") {
			names = append(names, path.Join(drops, e.Name()))
		}
	}
	var files [][]byte
	for _, name := range names {
		text, err := c.read(name)
		if err != nil {
			return nil, err
		}
		files = append(files, text)
	}
	return reading.MaxPods(files...)
}
