package node

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"cnictl/doctor/collect/reading"
	"cnictl/doctor/evidence"
)

// packages reads the software of the host that matters to pod networking.
func (c *collector) packages(ctx context.Context) (out evidence.Packages, err error) {
	out.Packages = []string{}
	for name, file := range reading.PackageFiles {
		if exists(c.path(file)) {
			out.Packages = append(out.Packages, name)
		}
	}
	slices.Sort(out.Packages)
	out.Systemd = c.systemd()
	out.Units = c.unitStates(ctx)
	files, err := c.networkFiles()
	if err != nil {
		return out, err
	}
	conf := reading.ReadNetworkd(files)
	out.LinkPolicy = conf.LinkPolicy
	if out.Systemd != nil && out.LinkPolicy == "" {
		out.LinkPolicy = "none" // no file sets one
	}
	state, known := out.Units["systemd-networkd.service"]
	running := state == "active"
	if !known && out.Units != nil { // there is no such unit
		known = true
	}
	out.ForeignRules, out.ForeignRoutes = removes(conf.ForeignRules, running, known), removes(conf.ForeignRoutes, running, known)
	out.Modules, err = c.missingModules()
	out.SELinux = c.selinux()
	out.BPFFS = c.bpffs()
	return out, err
}

// removes returns whether systemd-networkd acts on a setting, so only if it runs; nil if unknown.
func removes(setting, running, known bool) *bool {
	if setting && !known {
		return nil
	}
	does := setting && running
	return &does
}

// systemd returns its version from the name of its library; releases before 231 have none.
func (c *collector) systemd() *int {
	for _, dir := range []string{"/usr/lib/systemd", "/lib/systemd", "/usr/lib/x86_64-linux-gnu/systemd", "/usr/lib/aarch64-linux-gnu/systemd",
		"/usr/lib64/systemd"} {
		entries, err := c.list(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			rest, ok := strings.CutPrefix(e.Name(), "libsystemd-shared-")
			digits := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
			if n, err := strconv.Atoi(digits); ok && err == nil {
				return &n
			}
		}
	}
	return nil
}

// unitStates asks systemd for the states of units, nil if it is not there.
func (c *collector) unitStates(ctx context.Context) map[string]string {
	if !c.live() {
		return nil
	}
	ctx, cancel := c.spare(ctx)
	defer cancel()
	printed, err := run(ctx, "systemctl", append([]string{"show", "--property=Id,LoadState,ActiveState"}, reading.Units...)...)
	if err != nil {
		return nil
	}
	return unitsOf(printed)
}

// unitsOf reads the blocks that systemctl show prints. It omits units that are not installed.
func unitsOf(printed string) map[string]string {
	out := map[string]string{}
	for block := range strings.SplitSeq(printed, "\n\n") {
		unit := map[string]string{}
		for line := range strings.Lines(block) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			unit[name] = value
		}
		if unit["Id"] != "" && unit["LoadState"] != "not-found" {
			out[unit["Id"]] = unit["ActiveState"]
		}
	}
	return out
}

// networkFiles returns systemd's files for links and networks.
func (c *collector) networkFiles() (map[string]string, error) {
	out := map[string]string{}
	take := func(name string) error {
		text, err := c.read(name)
		if errors.Is(err, errIrregular) {
			text, err = nil, nil // a link to /dev/null masks the file
		}
		if err == nil {
			out[name] = string(text)
		}
		return ignore(err, fs.ErrNotExist)
	}
	for _, place := range reading.NetworkdPlaces() {
		if err := take(path.Join(place, "systemd/networkd.conf")); err != nil {
			return nil, err
		}
		for _, dir := range []string{"systemd/networkd.conf.d", "systemd/network"} {
			if err := c.each(path.Join(place, dir), take); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// each calls do for the files of a directory, and those in its drop-in directories.
func (c *collector) each(dir string, do func(name string) error) error {
	entries, err := c.list(dir)
	if err != nil {
		return ignore(err, fs.ErrNotExist)
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case e.IsDir() && strings.HasSuffix(name, ".link.d"):
			err = c.each(name, do)
		case !e.IsDir():
			err = do(name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// neededModules are the modules that the CNI's rules, veth pairs and branch ENIs need,
// besides one of the backends of iptables.
var neededModules = []string{"8021q", "nf_conntrack", "veth", "xt_addrtype", "xt_comment", "xt_connmark", "xt_mark", "xt_nat"}

// missingModules returns those that the kernel has neither built in, loaded nor on disk, nil if
// its list of modules cannot be read.
func (c *collector) missingModules() ([]string, error) {
	release, err := c.read("/proc/sys/kernel/osrelease")
	if err != nil {
		return nil, err
	}
	dir := path.Join("/lib/modules", strings.TrimSpace(string(release)))
	there := map[string]bool{}
	for _, list := range []string{"modules.dep", "modules.builtin"} {
		text, err := c.read(path.Join(dir, list))
		if err != nil {
			return nil, ignore(err, fs.ErrNotExist)
		}
		for line := range strings.Lines(string(text)) {
			file, _, _ := strings.Cut(strings.TrimSpace(line), ":")
			name, _, _ := strings.Cut(path.Base(file), ".")
			there[strings.ReplaceAll(name, "-", "_")] = true
		}
	}
	has := func(name string) bool { return there[name] || exists(c.path("/sys/module/"+name)) }
	out := []string{}
	for _, name := range neededModules {
		if !has(name) {
			out = append(out, name)
		}
	}
	if !has("nf_tables") && !has("ip_tables") {
		out = append(out, "ip_tables", "nf_tables")
	}
	slices.Sort(out)
	return out, nil
}

// bpffs reports whether the file system is mounted in which policy agents pin their programs, nil
// if the mounts cannot be read.
func (c *collector) bpffs() *bool {
	mounts, err := c.read("/proc/thread-self/mountinfo")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(mounts)) {
		mount, source, _ := strings.Cut(line, " - ")
		if f := strings.Fields(mount); len(f) > 4 && f[4] == "/sys/fs/bpf" && strings.HasPrefix(source, "bpf ") {
			return new(true)
		}
	}
	return new(false)
}

func (c *collector) selinux() string {
	switch text, err := c.read("/sys/fs/selinux/enforce"); {
	case errors.Is(err, fs.ErrNotExist):
		return "disabled"
	case err != nil:
		return ""
	case strings.TrimSpace(string(text)) == "1":
		return "enforcing"
	}
	return "permissive"
}
