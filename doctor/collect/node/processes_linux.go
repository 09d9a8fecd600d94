package node

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// process is a running program that matters to pod networking.
type process struct {
	pid  int
	name string   // of the program
	args []string // with the program
}

// maxProcesses bounds how many processes are looked at.
const maxProcesses = 20_000

// pids are those of all visible processes.
func (c *collector) pids() ([]int, error) {
	entries, err := c.list("/proc")
	if err != nil {
		return nil, err
	}
	var out []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && len(out) < maxProcesses {
			out = append(out, pid)
		}
	}
	slices.Sort(out)
	return out, nil
}

// programs are the container, or else the name, of the programs that matter.
var programs = map[string]string{
	"aws-k8s-agent": "aws-node", "aws-vpc-cni-init": "aws-vpc-cni-init", "controller": "aws-eks-nodeagent",
	"kubelet": "", "containerd": "", "aws-vpc-cni": "",
}

// findProcesses finds the programs that matter.
func (c *collector) findProcesses() ([]process, error) {
	pids, err := c.pids()
	if err != nil {
		return nil, err
	}
	var out []process
	for _, pid := range pids {
		line, err := c.read(proc(pid, "cmdline"))
		if err != nil || len(line) == 0 {
			continue // it has just ended, or is the kernel's
		}
		args := strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
		p := process{pid: pid, name: path.Base(args[0]), args: args}
		if _, ok := programs[p.name]; !ok || p.name == "controller" && !strings.Contains(string(line), "enable-network-policy") {
			continue
		}
		out = append(out, p)
	}
	return out, nil
}

func proc(pid int, name string) string { return filepath.Join("/proc", strconv.Itoa(pid), name) }

// environment reads what the containers of aws-node run with, credentials taken out.
func (c *collector) environment(context.Context) (map[string]map[string]string, error) {
	list, err := c.processes()
	if err != nil {
		return nil, err
	}
	out := map[string]map[string]string{}
	for _, p := range list {
		container := programs[p.name]
		if container == "" || out[container] != nil {
			continue
		}
		text, err := c.read(proc(p.pid, "environ"))
		if err != nil {
			return nil, err
		}
		env := map[string]string{}
		for variable := range bytes.SplitSeq(text, []byte{0}) {
			name, value, ok := strings.Cut(clean(string(variable)), "=")
			if ok && name != "" {
				env[name] = value
			}
		}
		out[container] = env
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no process of aws-node is visible: %w", os.ErrNotExist)
	}
	return out, nil
}
