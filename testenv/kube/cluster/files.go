package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"cnictl/testenv/node/agent"
)

// layers are the directories that a node covers with its own layers.
var layers = []string{"/etc", "/opt", "/var/lib", "/var/log"}

// fixedSysctls belong to the whole machine, and kubelet would set them: a node shows kubelet
// the values that it expects.
var fixedSysctls = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// layFiles creates the node's own view of the machine's files.
func (m *Machine) layFiles() error {
	var script strings.Builder
	add := func(format string, args ...any) { fmt.Fprintf(&script, format+"\n", args...) }
	add("set -eu")
	// crun treats a mix of both cgroup versions as neither.
	add("if grep -q ' /sys/fs/cgroup/unified ' /proc/mounts; then umount -l /sys/fs/cgroup/unified; fi")
	for _, lower := range layers {
		upper := m.upper(lower)
		work := filepath.Join(filepath.Dir(upper), "work")
		for _, d := range []string{upper, work} {
			if err := os.MkdirAll(d, 0o755); err != nil {
				return err
			}
		}
		add("mount -t overlay overlay -o lowerdir=%s,upperdir=%s,workdir=%s %s", lower, upper, work, lower)
	}
	for place, own := range map[string]string{"/opt/cni/bin": cniBin, "/etc/cni/net.d": cniConf, "/var/log/aws-routed-eni": "log"} {
		add("mkdir -p %s; mount --bind %s %s", place, filepath.Join(m.Dir, own), place)
	}
	for name, value := range fixedSysctls {
		file := filepath.Join(m.Dir, "sysctl", strings.ReplaceAll(name, "/", "."))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		add("mount --bind %s /proc/sys/%s", file, name)
	}
	return m.run("/bin/sh", "-c", script.String())
}

// upper returns the directory that stores what the node writes to a directory of the machine.
func (m *Machine) upper(lower string) string {
	return filepath.Join(m.Dir, "over", strings.ReplaceAll(lower, "/", "_"), "upper")
}

// Directories of the node below Machine.Dir, which node.Options names.
const (
	cniBin  = "opt-cni-bin"
	cniConf = "cni-net.d"
)

// run runs a program in the node. It returns an error if the program fails.
func (m *Machine) run(program string, args ...string) error {
	_, err := m.Output(program, args...)
	return err
}

// Output runs a program in the node and returns its standard output.
func (m *Machine) Output(program string, args ...string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", err
	}
	r, err := m.Exec(agent.Cmd{Argv: append([]string{path}, args...), Env: environment()})
	if err == nil && r.Code != 0 {
		err = fmt.Errorf("status %d: %s", r.Code, strings.TrimSpace(string(r.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("run %s on %s: %w", filepath.Base(program), m.Name, err)
	}
	return string(r.Stdout), nil
}

// environment returns the environment for programs on a node.
func environment(more ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=/root"}, more...)
}
