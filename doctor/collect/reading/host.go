package reading

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"cnictl/daemon/lazy"
	"cnictl/daemon/scrub"
	"cnictl/doctor/evidence"
)

// Sysctls reads the output of sysctl. It keeps what the daemon, the init container or the host
// set for pod networking, without the settings of pods' links.
func Sysctls(printed string) map[string]string {
	out := map[string]string{}
	for name, value := range settings(printed) {
		switch parts := strings.Split(name, "."); {
		case slices.Contains(hostSettings, name):
		case len(parts) == 5 && parts[0] == "net" && parts[2] == "conf" && parts[3] != "lo" && podHash(parts[3]) == "" &&
			slices.Contains(linkSettings[parts[1]], parts[4]):
		default:
			continue
		}
		out[name] = value
	}
	return out
}

// settings yields the lines of sysctl, NAME = VALUE, or of grep below /proc/sys, PATH:VALUE.
func settings(printed string) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for line := range strings.Lines(printed) {
			name, value, ok := strings.Cut(line, " = ")
			if below, found := strings.CutPrefix(line, "/proc/sys/"); found {
				name, value, ok = strings.Cut(below, ":")
				name = strings.NewReplacer("/", ".", ".", "/").Replace(name)
			}
			if ok && !yield(name, strings.TrimSpace(value)) {
				return
			}
		}
	}
}

// listed yields the columns of each file, not of directories, in the output of ls -l.
func listed(printed string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for line := range strings.Lines(printed) {
			if f := strings.Fields(line); len(f) == 9 && !strings.HasPrefix(f[0], "d") && !yield(f) {
				return
			}
		}
	}
}

// ListedFiles returns the names in the output of ls -l.
func ListedFiles(printed string) []string {
	out := []string{}
	for f := range listed(printed) {
		out = append(out, f[8])
	}
	return out
}

// ListedPlugins returns the CNI plugins in the output of ls -ln for their directory.
func ListedPlugins(printed string) []evidence.CNIPlugin {
	out := []evidence.CNIPlugin{}
	for f := range listed(printed) {
		plugin := evidence.CNIPlugin{Name: f[8]}
		if size, err := strconv.Atoi(f[4]); err == nil {
			plugin.Size = &size
		}
		out = append(out, plugin)
	}
	return out
}

// linkSettings are the settings of a link, by family; hostSettings belong to no link.
var (
	hostSettings = []string{"net.ipv4.ip_forward", "net.ipv4.tcp_early_demux"}
	linkSettings = map[string][]string{
		"ipv4": {"rp_filter", "send_redirects", "forwarding"},
		"ipv6": {"accept_ra", "accept_redirects", "disable_ipv6", "forwarding"},
	}
)

// SysctlFiles returns the files below /proc/sys of the settings that Sysctls keeps, for these
// links and for the host.
func SysctlFiles(links []string) []string {
	var out []string
	for _, name := range hostSettings {
		out = append(out, strings.ReplaceAll(name, ".", "/"))
	}
	for family, names := range linkSettings {
		for _, link := range links {
			for _, name := range names {
				out = append(out, path.Join("net", family, "conf", link, name))
			}
		}
	}
	return out
}

// Conntrack reads the output of sysctl, and of ethtool -S for all interfaces.
func Conntrack(sysctls, ethtool string) evidence.Conntrack {
	var out evidence.Conntrack
	for name, value := range settings(sysctls) {
		n, err := strconv.Atoi(value)
		switch {
		case err != nil:
		case name == "net.netfilter.nf_conntrack_count":
			out.Count = &n
		case name == "net.netfilter.nf_conntrack_max":
			out.Max = &n
		case name == "net.ipv4.neigh.default.gc_thresh3":
			out.Neighbours.IPv4.Max = &n
		case name == "net.ipv6.neigh.default.gc_thresh3":
			out.Neighbours.IPv6.Max = &n
		}
	}
	for line := range strings.Lines(ethtool) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64); err == nil {
			AddAllowance(&out.Allowance, name, n)
		}
	}
	return out
}

// NeighbourTable reads a file of /proc/net/stat: the names of the columns, then their values for each CPU in
// hexadecimal.
func NeighbourTable(stat string) (out evidence.NeighbourTable) {
	head, rest, _ := strings.Cut(stat, "\n")
	names := strings.Fields(head)
	for line := range strings.Lines(rest) {
		for i, value := range strings.Fields(line) {
			n, err := strconv.ParseInt(value, 16, 32)
			switch {
			case err != nil || i >= len(names):
			case names[i] == "entries": // of all CPUs together
				out.Entries = new(int(n))
			case names[i] == "table_fulls" && out.Full != nil:
				*out.Full += int(n)
			case names[i] == "table_fulls":
				out.Full = new(int(n))
			}
		}
	}
	return out
}

// AddAllowance adds a counter of the ENA driver. It ignores any other counter.
func AddAllowance(to *evidence.Allowance, counter string, n uint64) {
	var sum **int
	switch counter {
	case "conntrack_allowance_exceeded":
		sum = &to.Conntrack
	case "linklocal_allowance_exceeded":
		sum = &to.LinkLocal
	case "pps_allowance_exceeded":
		sum = &to.PPS
	case "bw_in_allowance_exceeded":
		sum = &to.BWIn
	case "bw_out_allowance_exceeded":
		sum = &to.BWOut
	default:
		return
	}
	if *sum == nil {
		*sum = new(int)
	}
	**sum = int(min(uint64(**sum)+min(n, math.MaxInt32), math.MaxInt32))
}

// PackageFiles are the packages that change a host's network behind the CNI's back, each with a
// file that proves its presence, however it was installed.
var PackageFiles = map[string]string{
	"NetworkManager":             "/usr/sbin/NetworkManager",
	"NetworkManager-cloud-setup": "/usr/libexec/nm-cloud-setup",
	"amazon-ec2-net-utils":       "/usr/bin/setup-policy-routes",
	"docker":                     "/usr/bin/dockerd",
	"ec2-net-utils":              "/etc/udev/rules.d/53-ec2-network-interfaces.rules",
	"firewalld":                  "/usr/sbin/firewalld",
	"ufw":                        "/usr/sbin/ufw",
}

// Units are the systemd units that change the network, or carry pods.
var Units = []string{
	"systemd-networkd.service", "NetworkManager.service", "nm-cloud-setup.service", "nm-cloud-setup.timer", "firewalld.service", "ufw.service",
	"iptables.service", "nftables.service", "docker.service", "containerd.service", "kubelet.service",
}

// Packages reads the output of rpm -qa or dpkg --list, that of systemctl list-units, and the
// files of systemd-networkd as ReadNetworkd takes them. An empty text means unknown.
func Packages(list, services string, networkd map[string]string) evidence.Packages {
	out := evidence.Packages{Packages: []string{}, Units: map[string]string{}}
	for line := range strings.Lines(list) {
		name, version := packageOf(line)
		if name == "systemd" {
			if n, err := strconv.Atoi(version[:len(version)-len(strings.TrimLeft(version, "0123456789"))]); err == nil {
				out.Systemd = &n
			}
		}
		if PackageFiles[name] != "" && !slices.Contains(out.Packages, name) {
			out.Packages = append(out.Packages, name)
		}
	}
	slices.Sort(out.Packages)
	for line := range strings.Lines(services) {
		f := strings.Fields(strings.TrimLeft(line, " ●*×"))
		if len(f) > 3 && slices.Contains(Units, f[0]) && f[1] == "loaded" {
			out.Units[f[0]] = f[2]
		}
	}
	conf := ReadNetworkd(networkd)
	out.LinkPolicy = conf.LinkPolicy
	set := slices.ContainsFunc(slices.Collect(maps.Keys(networkd)), func(file string) bool { return strings.Contains(file, "networkd.conf") })
	switch stopped := services != "" && out.Units["systemd-networkd.service"] != "active"; {
	case stopped:
		out.ForeignRules, out.ForeignRoutes = new(false), new(false)
	case set:
		out.ForeignRules, out.ForeignRoutes = &conf.ForeignRules, &conf.ForeignRoutes
	}
	return out
}

// packageOf returns the name and the version in a line of rpm -qa or dpkg --list.
func packageOf(line string) (name, version string) {
	f := strings.Fields(line)
	switch {
	case len(f) > 2 && len(f[0]) == 2 && f[0][1] == 'i': // desired and installed
		name, _, _ = strings.Cut(f[1], ":")
		return name, f[2]
	case len(f) > 0:
		parts := strings.Split(f[0], "-")
		if n := len(parts); n > 2 {
			return strings.Join(parts[:n-2], "-"), parts[n-2]
		}
	}
	return "", ""
}

// daemonProcess is the daemon's program. netstat truncates names.
const daemonProcess = "aws-k8s-agent"

// Listeners reads the listening TCP sockets from the output of netstat -plant. The output also
// has netstat's own errors, so if it has no socket, nothing is known.
func Listeners(printed string) ([]evidence.Listener, error) {
	out := []evidence.Listener{}
	for line := range strings.Lines(printed) {
		f := strings.Fields(line)
		if len(f) < 6 || f[5] != "LISTEN" {
			continue
		}
		colon := strings.LastIndexByte(f[3], ':')
		host, err := netip.ParseAddr(f[3][:max(colon, 0)])
		port, portErr := strconv.ParseUint(f[3][colon+1:], 10, 16)
		if err != nil || portErr != nil {
			continue
		}
		l := evidence.Listener{Address: netip.AddrPortFrom(host, uint16(port)).String()}
		if len(f) > 6 {
			_, l.Process, _ = strings.Cut(f[6], "/")
			l.Process = strings.TrimSuffix(path.Base("/"+l.Process), ":")
		}
		if len(l.Process) > 5 && strings.HasPrefix(daemonProcess, l.Process) {
			l.Process = daemonProcess
		}
		if l.Process == "/" {
			l.Process = ""
		}
		out = append(out, l)
	}
	if len(out) == 0 {
		return nil, errors.New("netstat: no socket listens")
	}
	slices.SortFunc(out, func(a, b evidence.Listener) int {
		return cmp.Or(strings.Compare(a.Address, b.Address), strings.Compare(a.Process, b.Process))
	})
	return slices.Compact(out), nil
}

// yamlMaxPods matches the setting in YAML, at the beginning of a line.
var yamlMaxPods = lazy.Regexp(`(?m)^maxPods:[ \t]*([0-9]{1,9})[ \t\r]*(?:#.*)?$`)

// MaxPods returns the value in kubelet's configuration files, that of the last one that has it,
// nil if none does. They are JSON or YAML, drop-ins after the file that they change.
func MaxPods(files ...[]byte) (*int, error) {
	var out *int
	for _, data := range files {
		var conf struct {
			MaxPods *int `json:"maxPods"`
		}
		err := json.Unmarshal(data, &conf)
		if m := yamlMaxPods().FindSubmatch(data); m != nil {
			n, _ := strconv.Atoi(string(m[1])) // nine digits at most
			conf.MaxPods = &n
		} else if err != nil && bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
			return nil, fmt.Errorf("read configuration of kubelet: %w", err)
		}
		if conf.MaxPods != nil {
			out = conf.MaxPods
		}
	}
	return out, nil
}

// ContainerEnv reads the environments of containers, by name, from the output of ctr container
// info, one object per container. Of containers of one name the newest counts. Values of secrets
// are removed.
func ContainerEnv(printed io.Reader) (map[string]map[string]string, error) {
	out, created := map[string]map[string]string{}, map[string]time.Time{}
	for d := json.NewDecoder(printed); ; {
		var c struct {
			Labels    map[string]string
			CreatedAt time.Time
			Spec      struct {
				Process struct{ Env []string }
			}
		}
		switch err := d.Decode(&c); {
		case errors.Is(err, io.EOF) && len(out) > 0:
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("read containers: %w", err)
		}
		name := cmp.Or(c.Labels["io.kubernetes.container.name"], "aws-node")
		if c.CreatedAt.Before(created[name]) {
			continue
		}
		out[name], created[name] = map[string]string{}, c.CreatedAt
		for _, setting := range c.Spec.Process.Env {
			if key, value, ok := strings.Cut(setting, "="); ok {
				out[name][key] = scrub.Setting(key, value)
			}
		}
	}
}
