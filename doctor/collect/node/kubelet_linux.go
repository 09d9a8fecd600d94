package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"cnictl/doctor/evidence"
)

// kubeletFiles are where the AMIs keep kubelet's configuration, the usual one first.
var kubeletFiles = []string{"/etc/kubernetes/kubelet/config.json", "/etc/kubernetes/kubelet/kubelet-config.json", "/etc/kubernetes/kubelet/config", "/var/lib/kubelet/config.yaml"}

// kubelet reads kubelet's configuration as its process was given it: flags win over the
// files of the directory of drop-ins, and these over the file.
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

// maxPods is what a configuration file says, and the drop-ins beside it; nil: nothing.
func (c *collector) maxPods(file, drops string) (*int, error) {
	text, err := c.read(file)
	if err != nil {
		return nil, err
	}
	most, err := maxPodsOf(file, text, nil)
	if drops == "" {
		drops = file + ".d" // as nodeadm names it
	}
	entries, listErr := c.list(drops)
	if listErr != nil {
		return most, err
	}
	for _, e := range entries {
		if err == nil && strings.HasSuffix(e.Name(), ".conf") {
			if text, err = c.read(path.Join(drops, e.Name())); err == nil {
				most, err = maxPodsOf(e.Name(), text, most)
			}
		}
	}
	return most, err
}

// maxPodsOf reads a file in JSON or YAML.
func maxPodsOf(file string, text []byte, before *int) (*int, error) {
	var conf struct {
		MaxPods *int `json:"maxPods" yaml:"maxPods"`
	}
	if json.Unmarshal(text, &conf) != nil {
		if err := yaml.Unmarshal(text, &conf); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	if conf.MaxPods == nil {
		return before, nil
	}
	return conf.MaxPods, nil
}
