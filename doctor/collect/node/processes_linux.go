package node

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cnictl/doctor/collect/reading"
)

// process is a running program that matters to pod networking.
type process struct {
	pid  int
	name string   // of the program
	args []string // including the program
}

// maxProcesses bounds how many processes are examined.
const maxProcesses = 20_000

// pids returns the ids of all visible processes.
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

// programs maps the programs that matter to their containers, "" if they have none.
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
			continue // it has just ended, or is a kernel thread
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

// environments reads the environments of aws-node's containers, for those that ended, such as the
// init container, the last one.
func (c *collector) environments(ctx context.Context) (map[string]map[string]string, error) {
	running, err := c.environment()
	if known := c.containerd(ctx); len(known) > 0 {
		maps.Copy(known, running)
		return known, nil
	}
	return running, err
}

// maxContainers bounds how many containers containerd is asked about.
const maxContainers = 16

// containerd reads the environments that containerd keeps, also of containers that ended. There
// are none if the runtime is another one, or does not answer.
func (c *collector) containerd(ctx context.Context) map[string]map[string]string {
	ctr, err := find("ctr")
	if err != nil || !c.live() {
		return nil
	}
	ctx, cancel := c.spare(ctx) // what is running is known without it
	defer cancel()
	list := []string{"--namespace=k8s.io", "containers", "list", "--quiet"}
	for _, container := range programs {
		if container != "" {
			list = append(list, `labels."io.kubernetes.container.name"==`+container)
		}
	}
	ids, err := run(ctx, ctr, list...)
	if err != nil {
		return nil
	}
	var all strings.Builder
	for i, id := range strings.Fields(ids) {
		if i == maxContainers {
			break
		}
		if info, err := run(ctx, ctr, "--namespace=k8s.io", "containers", "info", id); err == nil { // else it has gone
			all.WriteString(info)
		}
	}
	env, err := reading.ContainerEnv(strings.NewReader(all.String()))
	if err != nil {
		return nil
	}
	return env
}

// environment reads the environments of aws-node's processes, without credentials.
func (c *collector) environment() (map[string]map[string]string, error) {
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
