package pagetest

import (
	"fmt"
	"net/netip"
	"time"

	"cnictl/capacity/maxpods"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/watch"
)

// Names of the nodes.
const (
	Plain    = "ip-10-0-3-17"
	Starved  = "ip-10-0-9-201"
	Prefixes = "ip-10-0-7-8"
	IPv6     = "ip-10-0-6-6"
	Cards    = "ip-10-0-44-1"
	Upstream = "ip-10-0-2-66"
	Many     = "ip-10-0-50-50"
	Down     = "ip-10-0-1-1"
	Windows  = "ip-10-0-1-2"
	Hostile  = "ip-\x1b[31m10\u202e\u0000-\u200b世界\xff"
	Absent   = "ip-10-9-9-9"
)

// All returns the names of the nodes in the fleet.
func All() []string {
	return []string{Plain, Starved, Prefixes, IPv6, Cards, Upstream, Many, Down, Windows, Hostile}
}

func at(d time.Duration) *time.Time { return new(Start().Add(-d)) }

// world is the data of the nodes: a summary and documents for each.
type world struct {
	nodes   []document.NodeIPAM
	details map[string]watch.Detail
}

func (w *world) add(n document.NodeIPAM, d watch.Detail) {
	d.Node = n.Metadata.Name
	if d.Node == Plain || d.Node == Prefixes { // these were read with their addresses
		n.ENIs = d.ENIs
	}
	w.nodes = append(w.nodes, n)
	w.details[d.Node] = d
}

func makeWorld() *world {
	w := &world{details: map[string]watch.Detail{}}
	w.plain()
	w.starved()
	w.prefixes()
	w.ipv6()
	w.cards()
	w.upstream()
	w.many()
	w.rest()
	w.hostile()
	return w
}

// live returns a node that answered two seconds ago.
func live(name, kind string, s *introspect.Summary) document.NodeIPAM {
	s.APIVersion, s.Kind, s.Version, s.Node, s.InstanceType, s.InstanceID = introspect.APIVersion, introspect.KindSummary, "v1.0.0", name, kind, "i-0123456789abcdef0"
	s.StartedAt = at(200 * time.Minute)
	if s.IPFamily == "" {
		s.IPFamily = "ipv4"
	}
	s.CooldownSeconds = new(30.0)
	if s.Targets.WarmENI == nil {
		s.Targets = introspect.Targets{WarmENI: new(1), WarmIP: new(5), MinimumIP: new(10), WarmPrefix: new(0), MaxENI: new(0)}
	}
	if s.Subnets == nil {
		s.Subnets = []introspect.Subnet{{ID: "subnet-0aa11bb22cc33dd44", CIDR: "10.0.0.0/19", Available: new(1801), AsOf: at(12 * time.Second)}, {ID: "subnet-0fedcba9876543210", CIDR: "10.0.32.0/24", Available: new(9), AsOf: at(45 * time.Second)}}
	}
	return document.NodeIPAM{
		APIVersion: introspect.APIVersion, Kind: document.KindNode, Metadata: document.ObjectMeta{Name: name},
		State: document.StateLive, Source: document.SourceSummary, SampledAt: at(2 * time.Second), LatencySeconds: new(0.148), Via: document.ViaPortForward, Summary: s,
		Object: &document.NodeObject{
			Zone: "eu-west-1a", InstanceType: kind, InstanceID: "i-0123456789abcdef0", OS: "linux", Ready: new(true), MaxPods: new(29), CreatedAt: at(30 * time.Hour),
			Daemon: &document.DaemonPod{Namespace: "kube-system", Name: "aws-node-x7k2p", Phase: "Running", Ready: true, Restarts: 1},
		},
	}
}

// eni makes an ENI of single addresses: used ones first, then cooling, then free.
func eni(id string, device int, first string, used, cooling, free int) introspect.NodeENI {
	table := 254
	if device > 0 {
		table = device + 1
	}
	e := introspect.NodeENI{ID: id, Device: device, SubnetID: "subnet-0aa11bb22cc33dd44", Primary: device == 0, RouteTable: &table}
	a := netip.MustParseAddr(first)
	for i := range used + cooling + free {
		record := introspect.NodeAddress{Address: a, State: introspect.AddressFree}
		switch {
		case i < used:
			record = introspect.NodeAddress{Address: a, State: introspect.AddressAssigned, PodNamespace: "shop", PodName: fmt.Sprintf("cart-7d9f-%d", i), AssignedAt: at(time.Duration(i+1) * 7 * time.Minute)}
		case i < used+cooling:
			record = introspect.NodeAddress{Address: a, State: introspect.AddressCooling, AssignedAt: at(time.Hour), UnassignedAt: at(time.Duration(8+i) * time.Second)}
		}
		e.CIDRs = append(e.CIDRs, introspect.NodeCIDR{CIDR: netip.PrefixFrom(a, a.BitLen()), Addresses: []introspect.NodeAddress{record}})
		a = a.Next()
	}
	return e
}

// block makes a prefix with the given number of addresses in use.
func block(prefix string, used int) introspect.NodeCIDR {
	c := introspect.NodeCIDR{CIDR: netip.MustParsePrefix(prefix)}
	a := c.CIDR.Addr()
	for i := range used {
		c.Addresses = append(c.Addresses, introspect.NodeAddress{Address: a, State: introspect.AddressAssigned, PodNamespace: "web", PodName: fmt.Sprintf("front-%02d", i), AssignedAt: at(time.Duration(i+1) * time.Minute)})
		a = a.Next()
	}
	if used > 0 && used < 15 {
		c.Addresses = append(c.Addresses, introspect.NodeAddress{Address: a, State: introspect.AddressCooling, AssignedAt: at(time.Hour), UnassignedAt: at(3 * time.Second)})
	}
	return c
}

// counted recounts ENIs, sets the summary's cards and ENIs, and returns the ENIs.
func counted(s *introspect.Summary, enis []introspect.NodeENI, slots int) []introspect.NodeENI {
	p := introspect.Pool{ENIs: enis, Cards: append([]introspect.CardSummary(nil), s.Cards...)}
	p.Recount(Start(), 30*time.Second)
	for i, c := range p.Cards {
		have := s.Cards[i]
		c.ENILimit, c.AddressLimit, c.OtherENIs, c.SlotsPerENI = have.ENILimit, have.AddressLimit, new(0), new(slots)
		if have.Mode != "" {
			c.Mode = have.Mode
		}
		s.Cards[i] = c
	}
	for _, e := range enis {
		var flags []string
		if e.Primary {
			flags = append(flags, introspect.ENIFlagPrimary)
		}
		if e.Trunk {
			flags = append(flags, introspect.ENIFlagTrunk)
		}
		s.ENIs = append(s.ENIs, introspect.ENISummary{ID: e.ID, Card: e.Card, Device: e.Device, Total: e.Total, Assigned: e.Assigned, Cooling: e.Cooling, Free: e.Free, Flags: flags})
	}
	return enis
}

// terms returns max-pods as a daemon reports it.
func terms(in maxpods.Input) *introspect.MaxPods {
	return introspect.MaxPodsOf(new(in.MaxPods), "node", maxpods.Compute(in))
}

// plain adds a healthy m5.large that is about to assign some addresses.
func (w *world) plain() {
	s := &introspect.Summary{Cards: []introspect.CardSummary{{ENILimit: new(3), AddressLimit: new(27)}}, WaitingADDs: new(0)}
	s.MaxPods = terms(maxpods.Input{InstanceType: "m5.large", MaxPods: 29})
	s.ADDs, s.DELs = &introspect.RequestCounts{Total: 212, Failed: new(0)}, &introspect.RequestCounts{Total: 205, Failed: new(0)}
	s.EC2Calls = []introspect.EC2Calls{{Action: "CreateNetworkInterface", Calls: 1, LastAt: at(3 * time.Minute)}, {Action: "AssignPrivateIpAddresses", Calls: 9, Errors: 2, LastAt: at(12 * time.Second)}}
	enis := counted(s, []introspect.NodeENI{eni("eni-0a1b2c3d4e5f60718", 0, "10.0.3.41", 5, 0, 4), eni("eni-0b2c3d4e5f6071829", 1, "10.0.4.11", 2, 2, 3)}, 9)
	d := watch.Detail{ENIs: enis}
	d.Plan = &introspect.NodePlan{Actions: []introspect.PlannedAction{
		{Kind: introspect.ActionAssignAddresses, ENIID: "eni-0b2c3d4e5f6071829", Card: new(0), Device: new(1), Count: 3, Reason: "warm-ip-target", Title: "the pool is below WARM_IP_TARGET", Text: "assign 3 secondary IPs to eni-0b2c3d4e5f6071829: warm-ip-target"},
		{Kind: introspect.ActionWait, Reason: "scale-down-spacing", Title: "the pool shrinks at most every 30 seconds", Until: new(Start().Add(14 * time.Second)), Text: "wait: scale-down-spacing"},
	}}
	pod := introspect.PodRef{Namespace: "shop", Name: "cart-7d9f-1"}
	d.Events = &introspect.NodeEvents{Epoch: "dn0wqazzi60w", Next: 6, Items: []introspect.Event{
		{Seq: 1, At: *at(200 * time.Minute), Kind: introspect.EventStarted},
		{Seq: 2, At: *at(180 * time.Minute), Kind: introspect.EventENIAttached, ENIID: "eni-0b2c3d4e5f6071829", Device: new(1), SubnetID: "subnet-0aa11bb22cc33dd44"},
		{Seq: 3, At: *at(14 * time.Minute), Kind: introspect.EventAddressAssigned, Pod: &pod, Address: netip.MustParseAddr("10.0.3.42"), ENIID: "eni-0a1b2c3d4e5f60718"},
		{Seq: 4, At: *at(4 * time.Minute), Kind: introspect.EventActionStarted, ENIID: "eni-0b2c3d4e5f6071829", Reason: "warm-ip-target", Message: "assign 2 secondary IPs"},
		{Seq: 5, At: *at(239 * time.Second), Kind: introspect.EventActionDone, ENIID: "eni-0b2c3d4e5f6071829", Reason: "warm-ip-target", DurationMS: new(int64(640))},
		{Seq: 6, At: *at(8 * time.Second), Kind: introspect.EventAddressReleased, Pod: &introspect.PodRef{Namespace: "shop", Name: "pay-5c6b-x2"}, Address: netip.MustParseAddr("10.0.4.13")},
	}}
	d.Failures = &introspect.NodeFailures{Items: []introspect.Failure{{At: *at(15 * time.Minute), Pod: pod, Cause: "pool-dry", Title: "no free address", Detail: "no address was free within 10 s: 18 in use, 0 cooling", WaitedMS: 10012, Transient: true}}}
	d.Pod = &introspect.NodePod{Pod: pod, Interfaces: []introspect.PodInterface{{
		Address: netip.MustParseAddr("10.0.3.42"), ENIID: "eni-0a1b2c3d4e5f60718", Card: new(0), Device: new(0), SubnetID: "subnet-0aa11bb22cc33dd44", RouteTable: new(254), AssignedAt: at(14 * time.Minute), HostLink: "enid8795c44c7f",
		Observed: &introspect.PodKernel{
			Link:   &introspect.PodLink{Name: "enid8795c44c7f", Index: 12, Kind: "veth", MAC: "9a:1f:5e:02:17:c3", MTU: 9001, Up: true, Running: true},
			Rules:  []introspect.PodRule{{Priority: 512, To: netip.MustParsePrefix("10.0.3.42/32"), Table: 254}, {Priority: 1536, From: netip.MustParsePrefix("10.0.3.42/32"), Table: 2}},
			Routes: []introspect.PodRoute{{Table: 254, To: netip.MustParsePrefix("10.0.3.42/32"), Link: "enid8795c44c7f"}},
		},
		Differences: []string{`The rule "1536: from 10.0.3.42 lookup 2" is not one of the pod's: it sends the pod's traffic elsewhere.`},
	}}}
	d.Pods = []watch.Pod{{PodRef: pod, Phase: "Running", IPs: []string{"10.0.3.42"}, StartedAt: at(14 * time.Minute)}}
	d.Logs = &introspect.NodeLogs{Path: "/host/var/log/aws-routed-eni/ipamd.log", Lines: []string{
		`{"level":"info","ts":"2026-11-21T13:58:11.000Z","caller":"ipamd/loop.go:81","msg":"assigned addresses","eni_id":"eni-0b2c3d4e5f6071829","count":2,"reason":"warm-ip-target"}`,
		`{"level":"warn","ts":"2026-11-21T14:01:11.000Z","caller":"ipamd/requests.go:91","msg":"ADD failed","cause":"pool-dry","namespace":"shop","pod":"cart-7d9f-1","detail":"no address was free within 10 s"}`,
		`{"level":"debug","ts":"2026-11-21T14:02:01.500Z","msg":"plan","actions":1}`,
		`panic: not a line of the logger`,
	}}
	d.KubeEvents = []watch.KubeEvent{
		{UID: "1", At: *at(70 * time.Second), Count: 4, Type: "Warning", Reason: "FailedCreatePodSandBox", Kind: "Pod", Object: "shop/cart-7d9f-1", Node: Plain, Source: "kubelet",
			Message: "Failed to create pod sandbox: plugin type=\"aws-cni\" failed (add): add cmd: failed to assign an IP address to container"},
		{UID: "2", At: *at(3 * time.Minute), Count: 1, Type: "Normal", Reason: "NodeTrunkInitiated", Kind: "Node", Object: Plain, Node: Plain, Source: "vpc-resource-controller", Message: "The node has trunk interface initialized successfully"},
	}
	w.add(live(Plain, "m5.large", s), d)
}

// starved adds a node with waiting ADDs, a back-off and an operation in progress.
func (w *world) starved() {
	s := &introspect.Summary{Cards: []introspect.CardSummary{{ENILimit: new(4), AddressLimit: new(56)}}}
	s.WaitingADDs, s.WaitingSince = new(2), at(14*time.Second)
	s.Operations = []introspect.Operation{{Kind: "attach", Addresses: 14, Reason: "waiting-pods", StartedAt: at(2 * time.Second)}}
	s.Backoffs = []introspect.Backoff{{Scope: "attach", Until: Start().Add(7 * time.Second), Cause: "ec2-throttled"}}
	s.LastErrors = []introspect.LastError{{At: *at(3 * time.Second), Operation: "AttachNetworkInterface", Cause: "ec2-throttled", Message: "RequestLimitExceeded: Request limit exceeded.", Count: 3}}
	s.ADDs = &introspect.RequestCounts{Total: 96, Failed: new(3), Causes: map[string]int{"pool-dry": 3}}
	s.MaxPods = terms(maxpods.Input{InstanceType: "c5.xlarge", MaxPods: 110})
	enis := counted(s, []introspect.NodeENI{eni("eni-0c3d4e5f607182930", 0, "10.0.9.21", 14, 0, 0)}, 14)
	d := watch.Detail{ENIs: enis, Plan: &introspect.NodePlan{
		Blocked: []introspect.BlockedCard{{Cause: "ec2-throttled", Message: "the last request for an ENI failed: EC2 is throttling requests, next attempt in 7s"}},
		Unmet:   []introspect.UnmetTarget{{Target: "WARM_IP_TARGET", Wanted: 5, Possible: 0, Reason: "max-pods", Title: "the pool does not grow beyond max-pods"}},
	}}
	d.Failures = &introspect.NodeFailures{Items: []introspect.Failure{
		{At: *at(9 * time.Second), Pod: introspect.PodRef{Namespace: "batch", Name: "job-77"}, Cause: "pool-dry", Detail: "no address was free within 10 s", WaitedMS: 10001, Transient: true},
	}}
	d.Events = &introspect.NodeEvents{Epoch: "a", Next: 2, Items: []introspect.Event{
		{Seq: 1, At: *at(11 * time.Second), Kind: introspect.EventPoolMissed, Pod: &introspect.PodRef{Namespace: "batch", Name: "job-77"}},
		{Seq: 2, At: *at(3 * time.Second), Kind: introspect.EventBackoffStarted, Cause: "ec2-throttled", Message: "attach is held back for 10s"},
	}}
	d.Logs = &introspect.NodeLogs{Lines: []string{`{"level":"error","ts":"2026-11-21T14:02:08.000Z","msg":"attach ENI","error":"RequestLimitExceeded: Request limit exceeded.","duration":"1.2s"}`}}
	w.add(live(Starved, "c5.xlarge", s), d)
}

// prefixes adds a node with prefix delegation, a trunk and pods with branch ENIs.
func (w *world) prefixes() {
	s := &introspect.Summary{Cards: []introspect.CardSummary{{ENILimit: new(8), AddressLimit: new(3248), Mode: introspect.ModePrefix}}}
	s.Targets = introspect.Targets{WarmENI: new(1), WarmIP: new(0), MinimumIP: new(0), WarmPrefix: new(1), MaxENI: new(2)}
	s.Trunk = &introspect.Trunk{Enabled: true, Supported: new(true), ENIID: "eni-0e5f60718293a4b5c", BranchLimit: new(54), BranchUsed: new(3)}
	s.MaxPods = terms(maxpods.Input{InstanceType: "m5.4xlarge", MaxPods: 234, PrefixDelegation: true, MaxENI: 2, TrunkAttached: true})
	first := introspect.NodeENI{ID: "eni-0d4e5f60718293a4b", Primary: true, RouteTable: new(254), SubnetID: "subnet-0aa11bb22cc33dd44"}
	for i, used := range []int{16, 11, 3, 0} {
		first.CIDRs = append(first.CIDRs, block(fmt.Sprintf("10.0.7.%d/28", 16*(i+1)), used))
	}
	trunk := introspect.NodeENI{ID: "eni-0e5f60718293a4b5c", Device: 7, Trunk: true, RouteTable: new(8), SubnetID: "subnet-0aa11bb22cc33dd44"}
	enis := counted(s, []introspect.NodeENI{first, trunk}, 29)
	d := watch.Detail{ENIs: enis, Plan: &introspect.NodePlan{}, Events: &introspect.NodeEvents{Epoch: "b"}, Failures: &introspect.NodeFailures{}}
	annotation := `[{"eniId":"eni-0123456789abcdef0","ifAddress":"06:25:70:70:b1:69","privateIp":"10.0.12.199","ipv6Addr":"","vlanId":1,"subnetCidr":"10.0.0.0/19","subnetV6Cidr":"","associationID":"trunk-assoc-0"}]`
	d.Pods = []watch.Pod{
		{PodRef: introspect.PodRef{Namespace: "pay", Name: "ledger-0"}, Phase: "Running", IPs: []string{"10.0.12.199"}, Wants: true, PodENI: annotation, StartedAt: at(time.Hour)},
		{PodRef: introspect.PodRef{Namespace: "pay", Name: "ledger-1"}, Phase: "Pending", Wants: true, Reason: "FailedCreatePodSandBox", StartedAt: at(90 * time.Second)},
		{PodRef: introspect.PodRef{Namespace: "pay", Name: "broken"}, Phase: "Pending", Wants: true, PodENI: "{", StartedAt: at(time.Minute)},
	}
	w.add(live(Prefixes, "m5.4xlarge", s), d)
}

func (w *world) ipv6() {
	s := &introspect.Summary{IPFamily: "ipv6", Cards: []introspect.CardSummary{{ENILimit: new(3), AddressLimit: new(1 << 48), Mode: introspect.ModePrefix}}}
	s.MaxPods = terms(maxpods.Input{InstanceType: "m5.large", MaxPods: 110, IPv6: true})
	e := introspect.NodeENI{ID: "eni-06666666666666666", Primary: true, RouteTable: new(254), SubnetID: "subnet-06666666666666666", CIDRs: []introspect.NodeCIDR{block("2001:db8:7:1::/80", 12)}}
	s.Subnets = []introspect.Subnet{{ID: "subnet-06666666666666666", CIDR: ""}}
	enis := counted(s, []introspect.NodeENI{e}, 9)
	w.add(live(IPv6, "m5.large", s), watch.Detail{ENIs: enis, Plan: &introspect.NodePlan{}})
}

func (w *world) cards() {
	s := &introspect.Summary{}
	var enis []introspect.NodeENI
	for card := range 4 {
		s.Cards = append(s.Cards, introspect.CardSummary{Card: card, ENILimit: new(2), AddressLimit: new(98)})
		e := eni(fmt.Sprintf("eni-0%016d", card), 0, fmt.Sprintf("10.0.%d.10", 44+card), 3+card, 1, 2)
		e.Card, e.Primary, e.EFA = card, card == 0, card > 1
		if card > 0 {
			e.RouteTable = new(10000 + 100*card)
		}
		enis = append(enis, e)
	}
	w.add(live(Cards, "p5.48xlarge", s), watch.Detail{ENIs: counted(s, enis, 49), Plan: &introspect.NodePlan{}})
}

// upstream adds a node that serves only v1.
func (w *world) upstream() {
	s := &introspect.Summary{Cards: []introspect.CardSummary{{}}}
	enis := counted(s, []introspect.NodeENI{eni("eni-0f60718293a4b5c6d", 0, "10.0.2.70", 6, 1, 2)}, 9)
	s.Cards[0].SlotsPerENI, s.Cards[0].OtherENIs, s.ENIs = nil, nil, nil
	n := live(Upstream, "m6i.large", s)
	n.Source = document.SourceV1
	*s = introspect.Summary{Cards: s.Cards, Targets: introspect.Targets{WarmENI: new(1), WarmIP: new(0)}, IPFamily: "ipv4"}
	d := watch.Detail{ENIs: enis}
	d.KubeEvents = []watch.KubeEvent{{UID: "3", At: *at(40 * time.Second), Count: 1, Type: "Warning", Reason: "Unhealthy", Kind: "Pod", Object: "kube-system/aws-node-x7k2p", Node: Upstream, Message: "Readiness probe failed: timeout: failed to connect service \":50051\" within 5s"}}
	d.ContainerLog = &watch.ContainerLog{Namespace: "kube-system", Pod: "aws-node-x7k2p", Container: "aws-node", Lines: []watch.ContainerLine{
		{At: *at(199 * time.Minute), Text: `{"level":"info","ts":"2026-11-21T10:43:11.104Z","caller":"entrypoint.sh","msg":"Validating env variables ..."}`},
		{At: *at(198 * time.Minute), Text: `{"level":"info","ts":"2026-11-21T10:44:11.310Z","caller":"aws-k8s-agent/main.go:42","msg":"Starting L-IPAMD ..."}`},
		{At: *at(45 * time.Second), Text: "time=\"2026-11-21T14:01:26Z\" level=warning msg=\"not of this form\""},
	}}
	w.add(n, d)
}

// many adds a node with 500 ENIs, more than any instance has.
func (w *world) many() {
	s := &introspect.Summary{Cards: []introspect.CardSummary{{ENILimit: new(500), AddressLimit: new(4500)}}}
	var enis []introspect.NodeENI
	for i := range 500 {
		enis = append(enis, eni(fmt.Sprintf("eni-0%016x", i), i, fmt.Sprintf("10.%d.%d.1", 50+i/200, i%200), i%8, i%2, 1))
	}
	w.add(live(Many, "x.metal", s), watch.Detail{ENIs: counted(s, enis, 9), Plan: &introspect.NodePlan{}})
}

// rest adds nodes that report nothing.
func (w *world) rest() {
	down := live(Down, "m5.large", &introspect.Summary{})
	down.State, down.Summary, down.SampledAt, down.Source = document.StateUnreachable, nil, nil, ""
	down.Error = &document.NodeError{Node: Down, Reason: introspect.ReasonTimeout, Message: "no answer within 5s"}
	w.add(down, watch.Detail{Use: &watch.NodeUse{Pods: 31, Network: 28, Branch: 2, Waiting: 3, CNINode: &watch.CNINode{
		Name: Down, Features: []watch.CNINodeFeature{{Name: "SecurityGroupsForPods", Value: "0"}},
	}}})
	w.nodes = append(w.nodes, document.NodeIPAM{Metadata: document.ObjectMeta{Name: Windows}, State: document.StateNoDaemon, Object: &document.NodeObject{OS: "windows", InstanceType: "m5.large"}})
}

// hostile adds a node with terminal control sequences in every string.
func (w *world) hostile() {
	const bad = "\x1b]0;x\a\x1b[2J\u202e\u2066evil\r\n\t\x00\xc3\x28 世界 e\u0301"
	zoned := netip.MustParseAddr("fe80::1").WithZone(bad) // decoding refuses it; the screens must not rely on that
	s := &introspect.Summary{Cards: []introspect.CardSummary{{Mode: bad}}}
	e := eni("eni-"+bad, 0, "10.0.8.1", 2, 1, 1)
	e.SubnetID = bad
	for i := range e.CIDRs {
		for j := range e.CIDRs[i].Addresses {
			a := &e.CIDRs[i].Addresses[j]
			if a.State == introspect.AddressAssigned {
				a.PodName, a.PodNamespace = bad, bad
			}
		}
	}
	enis := counted(s, []introspect.NodeENI{e}, 4)
	s.Subnets = []introspect.Subnet{{ID: bad, CIDR: bad, Available: new(-3)}}
	s.MaxPods = &introspect.MaxPods{Source: bad, Verdict: bad, Terms: []introspect.MaxPodsTerm{{Name: bad, Value: -1}}}
	s.Backoffs = []introspect.Backoff{{Scope: bad, ID: bad, Until: Start().Add(time.Minute), Cause: bad}}
	s.LastErrors = []introspect.LastError{{Operation: bad, Cause: bad, Message: bad, Count: 9}}
	s.Operations = []introspect.Operation{{Kind: bad, ENIID: bad, Reason: bad, Addresses: 1}}
	s.EC2Calls = []introspect.EC2Calls{{Action: bad, Calls: 1, Errors: 1}}
	s.ADDs = &introspect.RequestCounts{Failed: new(1), Causes: map[string]int{bad: 1}}
	s.Trunk = &introspect.Trunk{Enabled: true, ENIID: bad, BranchUsed: new(9), BranchLimit: new(3)}
	n := live(Hostile, bad, s)
	s.Version = bad
	n.Object.Zone = bad
	pod := introspect.PodRef{Namespace: bad, Name: bad}
	d := watch.Detail{
		ENIs: enis,
		Plan: &introspect.NodePlan{
			Actions: []introspect.PlannedAction{{Text: bad, Title: bad, Reason: bad}},
			Blocked: []introspect.BlockedCard{{Cause: bad, Message: bad}}, Unmet: []introspect.UnmetTarget{{Target: bad, Reason: bad}},
		},
		Events:   &introspect.NodeEvents{Epoch: bad, Next: 1, Items: []introspect.Event{{Seq: 1, Kind: introspect.EventKind(bad), Pod: &pod, ENIID: bad, Cause: bad, Reason: bad, Message: bad}}},
		Failures: &introspect.NodeFailures{Items: []introspect.Failure{{Pod: pod, Cause: bad, Detail: bad, Title: bad}}},
		Pods:     []watch.Pod{{PodRef: pod, Phase: bad, Reason: bad, Wants: true, PodENI: bad}, {PodRef: introspect.PodRef{Name: bad}, Wants: true, Phase: bad, Reason: bad}},
		Logs:     &introspect.NodeLogs{Path: bad, Lines: []string{bad, `{"level":"info","msg":"\u001b[2J\u202e","pod":"\u0007","eni_id":"\r","` + "\x1b" + `":1}`, `{"level":"warn","msg":"a\u001bb","k\u001b":"v\u202e"}`}},
	}
	d.Pod = &introspect.NodePod{Pod: pod, Interfaces: []introspect.PodInterface{{Address: zoned, ENIID: bad, HostLink: bad, Problem: bad, Differences: []string{bad}, Observed: &introspect.PodKernel{
		Link: &introspect.PodLink{Name: bad, Kind: bad, MAC: bad}, Neighbours: []introspect.PodNeighbour{{Address: zoned, Link: bad, MAC: bad, State: bad}}, Routes: []introspect.PodRoute{{Gateway: zoned, Link: bad}}, Tables: []introspect.PodRoute{{Gateway: zoned, Link: bad}},
	}}}}
	d.KubeEvents = []watch.KubeEvent{{UID: bad, Type: bad, Reason: bad, Message: bad, Kind: bad, Object: bad, Node: bad, Source: bad, Namespace: bad, Name: bad}, {UID: "1", Kind: "Pod", Object: bad, Reason: bad, Message: bad}}
	d.ContainerLog = &watch.ContainerLog{Lines: []watch.ContainerLine{{Text: bad}}}
	w.add(n, d)
}
