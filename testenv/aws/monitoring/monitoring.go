package monitoring

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/iptables"
)

// View is what the agent reads of a node. Members that the agent could not read are zero.
type View struct {
	IPAMDLog     string            // /var/log/aws-routed-eni/ipamd.log
	KubeProxyLog string            // of its container
	PodLogs      []string          // below /var/log/pods: POD/CONTAINER
	Processes    []string          // their names, as in /proc/PID/comm
	Links        []Link            // of the node's network namespace
	ENIs         []byte            // /v1/enis on localhost:61679; nil if nothing listens
	Rules        [2]string         // ip rule show, IPv4 and IPv6
	Routes       [2]string         // ip route show table all
	Filters      [2]string         // iptables-save, ip6tables-save
	Checkpoint   []byte            // /var/run/aws-node/ipam.json
	Sandboxes    map[string]string // address of each sandbox that the runtime knows, by container ID
	IPForward    string            // net.ipv4.ip_forward
	Allowances   map[string]uint64 // ethtool -S: the ENA driver's …_allowance_exceeded, in packets
	LinkFiles    map[string]string // systemd's .link files, on Ubuntu only
}

// Link is a network interface.
type Link struct {
	Name  string
	Flags net.Flags
}

// Severities of findings. A fatal one makes the node not ready for the network.
const (
	Fatal   = "Fatal"
	Warning = "Warning"
)

// Finding is a reason of the condition NetworkingReady.
type Finding struct{ Reason, Severity, Detail string }

func (f Finding) String() string { return f.Severity + " " + f.Reason + ": " + f.Detail }

// Reasons returns the distinct reasons of findings, sorted.
func Reasons(list []Finding) []string {
	all := map[string]bool{}
	for _, f := range list {
		all[f.Reason] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// Agent is the agent's configuration.
type Agent struct {
	AllowedChains []string // allowedIPTablesChains: others may reject there
}

// Check returns what the agent finds, given two looks at a node, five minutes apart. What need not
// last for two looks is judged by the second one.
func (a Agent) Check(before, now View) (out []Finding) {
	for _, find := range []func(before, now View) []Finding{
		logLines, processes, links, addresses, checkpoint, a.filters, sysctl, allowances, linkFiles, kubeProxy,
	} {
		out = append(out, find(before, now)...)
	}
	return out
}

// Texts that the agent searches in the daemon's log.
const (
	textUnreachable = "Unable to reach API Server"
	textCheckFailed = "Failed to check API server connectivity"
	textStarting    = "Starting L-IPAMD"
	textNoAddresses = "InsufficientFreeAddressesInSubnet"
	repeatedStarts  = 5
)

func logLines(_, now View) (out []Finding) {
	starts := 0
	for line := range strings.Lines(now.IPAMDLog) {
		switch {
		case strings.Contains(line, textUnreachable), strings.Contains(line, textCheckFailed):
			out = append(out, Finding{"IPAMDNotReady", Fatal, line})
		case strings.Contains(line, textNoAddresses):
			out = append(out, Finding{"IPAMDNoIPs", Warning, line})
		case strings.Contains(line, textStarting):
			starts++
		}
	}
	if starts >= repeatedStarts {
		out = append(out, Finding{"IPAMDRepeatedlyRestart", Warning, strconv.Itoa(starts) + " starts"})
	}
	return out
}

// processes looks for the daemon while kubelet keeps logs of its pod.
func processes(before, now View) []Finding {
	runs := func(v View) bool {
		return slices.ContainsFunc(v.Processes, func(name string) bool { return strings.Contains(name, "aws-k8s-agent") })
	}
	here := slices.ContainsFunc(now.PodLogs, func(dir string) bool {
		pod, container := path.Split(dir)
		return strings.Contains(pod, "_aws-node-") && container == "aws-vpc-cni-init"
	})
	if here && !runs(before) && !runs(now) {
		return []Finding{{"IPAMDNotRunning", Fatal, "no process aws-k8s-agent"}}
	}
	return nil
}

func links(before, now View) (out []Finding) {
	was := map[string]net.Flags{}
	for _, l := range before.Links {
		was[l.Name] = l.Flags
	}
	for _, l := range now.Links {
		const both = net.FlagBroadcast | net.FlagMulticast
		first, known := was[l.Name]
		if !known || strings.HasPrefix(l.Name, "docker") || l.Flags&net.FlagLoopback != 0 || l.Flags&both != both {
			continue
		}
		switch lasting := ^(first | l.Flags); {
		case lasting&net.FlagUp != 0:
			out = append(out, Finding{"InterfaceNotUp", Fatal, l.Name})
		case lasting&net.FlagRunning != 0:
			out = append(out, Finding{"InterfaceNotRunning", Fatal, l.Name})
		}
	}
	return out
}

// addresses looks for the rules and routes of each pod address that the daemon lists.
func addresses(_, now View) (out []Finding) {
	if now.ENIs == nil {
		return nil
	}
	var cards introspect.ENIs
	if err := json.Unmarshal(now.ENIs, &cards); err != nil {
		return []Finding{{"MissingIPRules", Warning, "/v1/enis: " + err.Error()}}
	}
	find := func(reason, text, pattern string) []string {
		m := regexp.MustCompile(`(?m)` + pattern).FindStringSubmatch(text)
		if m == nil {
			out = append(out, Finding{reason, Warning, "nothing matches " + pattern})
		}
		return m
	}
	defaults := map[string]bool{}
	for _, p := range podAddresses(cards) {
		ip, family, scope := regexp.QuoteMeta(p.ip), 0, `.*scope link`
		if strings.Contains(p.ip, ":") {
			family, scope = 1, `.*metric 1024.* pref medium`
		}
		if p.primary {
			find("MissingIPRules", now.Rules[family], `^512:\s+from all to `+ip+` lookup main`)
		} else if m := find("MissingIPRules", now.Rules[family], `^1536:\s+from `+ip+` lookup (\S+)`); m != nil && !defaults[m[1]] {
			defaults[m[1]] = true
			find("MissingDefaultRoutes", now.Routes[family], `^default via \S+ dev \S+.* table `+regexp.QuoteMeta(m[1])+`\b`)
		}
		find("MissingIPRoutes", now.Routes[family], `^`+ip+` dev \S+ `+scope)
	}
	return out
}

// podAddress is an address of a pod.
type podAddress struct {
	ip      string
	primary bool // the primary ENI's
}

func podAddresses(cards introspect.ENIs) (out []podAddress) {
	for _, card := range cards {
		for _, e := range card.ENIs {
			for _, list := range []map[string]introspect.CIDR{e.AvailableIPv4Cidrs, e.IPv6Cidrs} {
				for _, c := range list {
					for _, a := range c.IPAddresses {
						if k := a.IPAMKey; k.ContainerID != "" && k.IfName != "" && k.NetworkName != "" {
							out = append(out, podAddress{a.Address, e.IsPrimary})
						}
					}
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b podAddress) int { return strings.Compare(a.ip, b.ip) })
	return out
}

// Named returns /v1/enis as releases before v1.23.0 answered. Newer ones, and ours, blank the
// container and the interface of each address, so that the agent compares none of them. With the
// names, its checks show whether rules and routes are as it expects.
func Named(enis []byte) ([]byte, error) {
	var cards introspect.ENIs
	if err := json.Unmarshal(enis, &cards); err != nil {
		return nil, err
	}
	for _, card := range cards {
		for _, e := range card.ENIs {
			for _, list := range []map[string]introspect.CIDR{e.AvailableIPv4Cidrs, e.IPv6Cidrs} {
				for _, c := range list {
					for ip, a := range c.IPAddresses {
						if a.IPAMMetadata.PodName != "" {
							a.IPAMKey = introspect.IPAMKey{NetworkName: "aws-cni", ContainerID: "c", IfName: "eth0"}
							c.IPAddresses[ip] = a
						}
					}
				}
			}
		}
	}
	return json.Marshal(cards)
}

// Compared returns the addresses of /v1/enis whose rules and routes the agent looks for.
func Compared(enis []byte) (out []string) {
	var cards introspect.ENIs
	if json.Unmarshal(enis, &cards) == nil {
		for _, p := range podAddresses(cards) {
			out = append(out, p.ip)
		}
	}
	return out
}

// checkpoint compares the daemon's file with what the runtime says of its sandboxes.
func checkpoint(_, now View) (out []Finding) {
	if now.Checkpoint == nil {
		return nil
	}
	var file struct {
		Allocations []struct {
			ContainerID string `json:"containerID"`
			IPv4        string `json:"ipv4"`
			IPv6        string `json:"ipv6"`
		} `json:"allocations"`
	}
	if err := json.Unmarshal(now.Checkpoint, &file); err != nil {
		return []Finding{{"IPAMDInconsistentState", Warning, err.Error()}}
	}
	for _, e := range file.Allocations {
		if address, known := now.Sandboxes[e.ContainerID]; known && (address == "" || address != e.IPv4 && address != e.IPv6) {
			detail := fmt.Sprintf("%s has %q, allocated is %s%s", e.ContainerID, address, e.IPv4, e.IPv6)
			out = append(out, Finding{"IPAMDInconsistentState", Warning, detail})
		}
	}
	return out
}

// kubeletPort is the port at which the kubelet listens.
const kubeletPort = "10250"

func (a Agent) filters(_, now View) (out []Finding) {
	for _, saved := range now.Filters {
		set := iptables.ParseKnown(saved)
		for _, t := range set.Tables {
			for _, c := range t.Chains {
				for _, rule := range c.Rules {
					words := map[string]string{}
					all := iptables.Words(rule)
					for i := range len(all) - 1 {
						if !all[i].Quoted { // a comment may say anything
							words[all[i].Text] = all[i+1].Text
						}
					}
					_, rejects := words["--reject-with"]
					for _, target := range []string{words["-j"], words["-g"]} {
						rejects = rejects || target == "REJECT" || target == "DROP"
					}
					where := t.Name + "/" + c.Name + " " + rule
					if rejects && !strings.HasPrefix(c.Name, "KUBE-") && !slices.Contains(a.AllowedChains, c.Name) {
						out = append(out, Finding{"UnexpectedRejectRule", Warning, where})
					}
					ports := append(strings.Split(words["--dports"], ","), words["--dport"])
					if words["-j"] == "DNAT" && slices.Contains(ports, kubeletPort) {
						out = append(out, Finding{"PortConflict", Warning, where})
					}
				}
			}
		}
	}
	return out
}

func sysctl(_, now View) []Finding {
	if v := strings.TrimSpace(now.IPForward); v != "1" {
		return []Finding{{"NetworkSysctl", Warning, "net.ipv4.ip_forward is " + strconv.Quote(v)}}
	}
	return nil
}

// allowancesBound is the lowest of the agent's bounds for ten minutes, which are up to 320. Its looks
// are five minutes apart.
const allowancesBound = 100

func allowances(before, now View) (out []Finding) {
	for _, name := range slices.Sorted(maps.Keys(now.Allowances)) {
		if grown := int64(now.Allowances[name] - before.Allowances[name]); 2*grown > allowancesBound {
			out = append(out, Finding{name, Warning, fmt.Sprintf("%d in five minutes", grown)})
		}
	}
	return out
}

var macPolicy = regexp.MustCompile(`(?m)^\s*MACAddressPolicy\s*=\s*(\S+)`)

func linkFiles(_, now View) (out []Finding) {
	for _, name := range slices.Sorted(maps.Keys(now.LinkFiles)) {
		if m := macPolicy.FindStringSubmatch(now.LinkFiles[name]); m != nil && m[1] != "none" {
			out = append(out, Finding{"MACAddressPolicyMisconfigured", Warning, name + " has " + m[1]})
		}
	}
	return out
}

var watchFails = regexp.MustCompile(`(?m)^.*Failed to watch .*: the server could not find the requested resource.*$`)

func kubeProxy(_, now View) []Finding {
	if line := watchFails.FindString(now.KubeProxyLog); line != "" {
		return []Finding{{"KubeProxyNotReady", Warning, line}}
	}
	return nil
}
