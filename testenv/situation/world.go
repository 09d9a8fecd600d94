package situation

import (
	"fmt"
	"net/netip"
	"time"

	"go.yaml.in/yaml/v3"

	"cnictl/capacity/limits"
	"cnictl/capacity/maxpods"
	"cnictl/doctor/evidence"
)

// world is the true state, which "expected" sources show.
type world struct {
	Node         string             `json:"node"`
	Instance     string             `json:"instance"`
	InstanceType string             `json:"instanceType"`
	Zone         string             `json:"zone"`
	VPC          string             `json:"vpc"`
	VPCCIDRs     []netip.Prefix     `json:"vpcCIDRs"`
	IPFamily     string             `json:"ipFamily" enum:"ipv4,ipv6"`
	OS           string             `json:"os"`
	Kernel       string             `json:"kernel"`
	Daemon       string             `json:"daemon" enum:"original,ours,none"`
	Version      string             `json:"version"`
	AgentVersion string             `json:"agentVersion"` // empty if there is no such container
	UpSince      time.Time          `json:"upSince"`
	Env          map[string]*string `json:"env"` // nil if not set, even though the manifest sets it
	InitEnv      map[string]string  `json:"initEnv"`
	AgentEnv     map[string]string  `json:"agentEnv"`
	MaxPods      *int               `json:"maxPods"` // nil for the instance type's default
	HostPods     int                `json:"hostPods"`
	Subnets      []worldSubnet      `json:"subnets"`
	ENIs         []worldENI         `json:"enis"`
	Pods         []worldPod         `json:"pods"`

	release evidence.Version
}

// maxEntries bounds everything that a number in a file can multiply: a node has a few thousand
// addresses, a cluster a few thousand nodes.
const maxEntries = 20_000

// asShipped means the policy agent that ships with the CNI release.
const asShipped = "as shipped"

type worldSubnet struct {
	ID        string            `json:"id"`
	CIDR      netip.Prefix      `json:"cidr"`
	Zone      string            `json:"zone"`
	VPC       string            `json:"vpc"`
	Available *int              `json:"available"`
	Tags      map[string]string `json:"tags"`
	IPv6CIDR  *netip.Prefix     `json:"ipv6CIDR"`
}

type worldENI struct {
	ID          string            `json:"id"`
	Card        int               `json:"card"`
	Device      *int              `json:"device"`  // nil for its position in the list
	Primary     *bool             `json:"primary"` // nil: only device 0 of card 0 is
	Trunk       bool              `json:"trunk"`
	EFA         bool              `json:"efa"`
	Managed     bool              `json:"managed" default:"true"`
	Excluded    bool              `json:"excluded"`
	Subnet      string            `json:"subnet"` // empty for the first
	MAC         string            `json:"mac"`
	IPs         int               `json:"ips"`
	Prefixes    int               `json:"prefixes"`
	Assigned    int               `json:"assigned"`
	Gone        int               `json:"gone"`
	Cooling     []time.Duration   `json:"cooling"`
	AssignedFor *time.Duration    `json:"assignedFor"` // nil for an hour
	Addresses   []netip.Addr      `json:"addresses"`
	CIDRs       []netip.Prefix    `json:"cidrs"`
	Tags        map[string]string `json:"tags"`
	Description *string           `json:"description"` // nil for the daemon's
}

type worldPod struct {
	evidence.KubePod
	ENI string `json:"eni"` // ENI of its address
}

func (e *worldENI) device() int { return *e.Device }

// healthy returns the world of a file that specifies nothing, at the time of the first reading.
func healthy(at time.Time) world {
	return world{
		Node: "node-1", Instance: "i-node", InstanceType: "m5.large", Zone: "eu-west-1a", VPC: "vpc-a",
		VPCCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")},
		IPFamily: "ipv4", OS: "amazon-linux-2023", Kernel: "6.1", Daemon: "original", Version: "v1.23.1", AgentVersion: asShipped,
		UpSince: at.Add(-24 * time.Hour), HostPods: 2,
	}
}

// complete fills in what follows from the rest, and rejects impossible values. node is the
// position reported in errors.
func (w *world) complete(node *yaml.Node) error {
	no := func(member, why string) error { return refuse(node, join("world", member), why) }
	if w.HostPods > maxEntries {
		return no("hostPods", fmt.Sprintf("want at most %d", maxEntries))
	}
	pods := 0
	for i := range w.Pods {
		if pods += max(1, w.Pods[i].Count); w.Pods[i].Count > maxEntries || pods > maxEntries {
			return no("pods", fmt.Sprintf("want at most %d", maxEntries))
		}
	}
	if len(w.Subnets) == 0 {
		w.Subnets = []worldSubnet{{ID: "subnet-a"}}
	}
	ids := map[string]*worldSubnet{}
	for i := range w.Subnets {
		s := &w.Subnets[i]
		if s.ID == "" {
			return no("subnets", "an entry has no id")
		}
		if ids[s.ID] != nil {
			return no("subnets", "subnet "+s.ID+" is given twice")
		}
		ids[s.ID] = s
		if !s.CIDR.IsValid() {
			s.CIDR = netip.MustParsePrefix("10.0.0.0/19")
		}
		if s.Available == nil {
			free := 4000
			s.Available = &free
		}
		s.Zone, s.VPC = or(s.Zone, w.Zone), or(s.VPC, w.VPC)
	}
	if w.ENIs == nil {
		free := 9
		if t, ok := limits.Lookup(w.InstanceType); ok {
			free = min(free, t.IPv4PerENI-1)
		}
		w.ENIs = []worldENI{{ID: "eni-a", Managed: true, IPs: free}}
		if w.IPFamily == "ipv6" {
			w.ENIs[0].IPs, w.ENIs[0].Prefixes = 0, 1
		}
	}
	if err := w.completeENIs(ids, no); err != nil {
		return err
	}
	version, ok := evidence.ParseVersion(w.Version)
	if !ok {
		return no("version", fmt.Sprintf("want a version, such as v1.23.1, not %q", w.Version))
	}
	if w.release = version; w.AgentVersion == asShipped {
		if w.Daemon == "ours" { // whose releases have numbers of their own
			version = evidence.Version{1, 23}
		}
		w.AgentVersion = shippedAgent(version)
	}
	if w.MaxPods == nil {
		figure, ok := maxpods.FileRule(w.InstanceType)
		if !ok {
			figure = maxpods.KubeletDefault
		}
		w.MaxPods = &figure
	}
	for i := range w.Pods {
		if p := &w.Pods[i]; p.ENI != "" && w.eni(p.ENI) == nil {
			return no("pods", "pod "+string(p.Pod)+" is on interface "+p.ENI+", which is not in the world")
		}
	}
	return nil
}

func (w *world) completeENIs(subnets map[string]*worldSubnet, no func(member, why string) error) error {
	if len(w.ENIs) == 0 {
		return no("enis", "want at least one: every instance has a primary interface")
	}
	slots, ids := map[[2]int]bool{}, map[string]bool{}
	for i := range w.ENIs {
		e := &w.ENIs[i]
		if e.ID == "" {
			return no("enis", "an entry has no id")
		}
		if e.Device == nil {
			device := i
			e.Device = &device
		}
		if e.Primary == nil {
			primary := e.Card == 0 && e.device() == 0
			e.Primary = &primary
		}
		if e.AssignedFor == nil {
			hour := time.Hour
			e.AssignedFor = &hour
		}
		e.Subnet = or(e.Subnet, w.Subnets[0].ID)
		e.IPs, e.Prefixes = max(e.IPs, len(e.Addresses)), max(e.Prefixes, len(e.CIDRs))
		if e.IPs > maxEntries || e.Prefixes > maxEntries || e.Assigned > maxEntries || len(e.Cooling) > maxEntries {
			return no("enis", fmt.Sprintf("interface %s: want at most %d of anything", e.ID, maxEntries))
		}
		switch slot := [2]int{e.Card, e.device()}; {
		case ids[e.ID]:
			return no("enis", "interface "+e.ID+" is given twice")
		case slots[slot]:
			return no("enis", "interface "+e.ID+" has card and device of another")
		case subnets[e.Subnet] == nil:
			return no("enis", "interface "+e.ID+" is in subnet "+e.Subnet+", which is not in the world")
		case e.Assigned+len(e.Cooling) > w.addressesOf(e):
			return no("enis", "interface "+e.ID+" has fewer addresses than are assigned and cooling")
		case e.Gone > e.Assigned:
			return no("enis", "interface "+e.ID+" has more gone addresses than assigned ones")
		default:
			ids[e.ID], slots[slot] = true, true
		}
	}
	return nil
}

// addressesOf returns how many pod addresses an interface has. A /80 counts as 2^20.
func (w *world) addressesOf(e *worldENI) int {
	if w.IPFamily == "ipv6" {
		return e.IPs + e.Prefixes<<20
	}
	return e.IPs + 16*e.Prefixes
}

func (w *world) eni(id string) *worldENI {
	for i := range w.ENIs {
		if w.ENIs[i].ID == id {
			return &w.ENIs[i]
		}
	}
	return nil
}

func (w *world) subnet(id string) *worldSubnet {
	for i := range w.Subnets {
		if w.Subnets[i].ID == id {
			return &w.Subnets[i]
		}
	}
	return nil
}

// shippedAgent returns the policy agent version in a release's manifest; empty if none.
func shippedAgent(cni evidence.Version) string {
	for _, r := range []struct {
		since evidence.Version
		agent string
	}{
		{evidence.Version{1, 23}, "v1.4.2"}, {evidence.Version{1, 22}, "v1.4.0"}, {evidence.Version{1, 21}, "v1.3.0"},
		{evidence.Version{1, 20, 2}, "v1.2.7"}, {evidence.Version{1, 20}, "v1.2.5"}, {evidence.Version{1, 19}, "v1.1.5"},
	} {
		if !cni.Before(r.since) {
			return r.agent
		}
	}
	return ""
}

func or(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}
