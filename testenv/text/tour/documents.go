package tour

import (
	"fmt"
	"net/netip"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/fleet/watch"
)

// opensAt is when the screens open the recording: two pods already wait.
func opensAt() time.Time { return End().Add(-3 * Every) }

// documents returns the documents that cnictl record read from the machine at a step, besides
// its sample; nil if it does not answer. They were read only in the last steps.
func (m machine) documents(step int) []watch.Detail {
	now := End().Add(-Every * time.Duration(Steps-step))
	if step < opened || m.name == Dead && step > Steps-12 {
		return nil
	}
	d := watch.Detail{Node: m.name, Pods: m.pods(step, now)}
	if m.name == Upstream { // upstream's daemon does not serve the rest
		return []watch.Detail{d}
	}
	d.Plan = &introspect.NodePlan{Targets: m.summary(step, now, now).Targets, MaxPods: m.maxPods()}
	d.Events, d.Logs, d.Failures = &introspect.NodeEvents{Epoch: "tour"}, &introspect.NodeLogs{Path: "/host/var/log/aws-routed-eni/ipamd.log"}, &introspect.NodeFailures{}
	m.steady(&d)
	out := []watch.Detail{d}
	switch m.name {
	case Starved:
		m.starved(&out[0], now)
		out = append(out, watch.Detail{Node: m.name, Pod: m.wiring(2*m.slots(), 0)})
	case Trunk:
		out[0].Logs.Lines = append(out[0].Logs.Lines,
			line(3*time.Minute, "info", "address assigned", `"namespace":"shop","pod":"cart-7d9f5b-24bbd","ip":"10.0.10.2"`),
			line(90*time.Second, "info", "pool action done", `"action":"assign","eni_id":"`+m.eni(0)+`","duration":"0.4s"`))
		out = append(out, watch.Detail{Node: m.name, Pod: m.wiring(0, 0)})
	}
	return out
}

// steady adds the older history that every machine has.
func (m machine) steady(d *watch.Detail) {
	ago := time.Duration(26+7*m.i) * time.Hour
	pod := m.podAt(0)
	address := m.enis(opened, End())[0].CIDRs[0].Addresses[0]
	d.Events.Items = []introspect.Event{
		{Seq: 1, At: *at(ago), Kind: introspect.EventStarted},
		{Seq: 2, At: *address.AssignedAt, Kind: introspect.EventAddressAssigned, Pod: &pod, Address: address.Address, ENIID: m.eni(0)},
	}
	d.Logs.Lines = []string{
		line(ago, "info", "Starting L-IPAMD v1.0.0  ...", `"caller":"ipamd/run.go:61"`),
		line(End().Sub(*address.AssignedAt), "info", "address assigned", fmt.Sprintf(`"namespace":%q,"pod":%q,"ip":%q,"eni_id":%q`, pod.Namespace, pod.Name, address.Address, m.eni(0))),
	}
	d.Events.Next = 2
}

// podAt returns the pod with the i-th address.
func (m machine) podAt(i int) introspect.PodRef {
	app := apps[(i+m.i)%len(apps)]
	return introspect.PodRef{Namespace: app[:4], Name: fmt.Sprintf("%s-%05x", app[5:], (i+17+m.i/len(apps)*200)*7919%0xfffff)}
}

const noAddresses = "subnet-0aa11bb22cc33dd44 has no free addresses, next attempt in 24s"

// waits are the pods without an address, each with the time since its first failed ADD.
var waits = []struct {
	pod introspect.PodRef
	ago time.Duration // before the end
}{
	{introspect.PodRef{Namespace: "shop", Name: "checkout-6c8d4f-9x2lq"}, 86 * time.Second},
	{introspect.PodRef{Namespace: "shop", Name: "checkout-6c8d4f-8h7vk"}, 66 * time.Second},
	{introspect.PodRef{Namespace: "shop", Name: "checkout-6c8d4f-tw4zd"}, 46 * time.Second},
	{introspect.PodRef{Namespace: "data", Name: "ingest-5f7c9-qm6fx"}, 26 * time.Second},
	{introspect.PodRef{Namespace: "blog", Name: "front-84b6d7-c5n2r"}, 6 * time.Second},
}

// starved adds the story of the machine whose subnet has no free address.
func (m machine) starved(d *watch.Detail, now time.Time) {
	last, seq := m.eni(2), uint64(2)
	event := func(ago time.Duration, e introspect.Event) {
		if e.At = *at(ago); !e.At.After(now) {
			seq++
			e.Seq = seq
			d.Events.Items, d.Events.Next = append(d.Events.Items, e), seq
		}
	}
	log := func(ago time.Duration, level, msg, rest string) {
		if !at(ago).After(now) {
			d.Logs.Lines = append(d.Logs.Lines, line(ago, level, msg, rest))
		}
	}
	event(8*time.Minute, introspect.Event{Kind: introspect.EventENIAttached, ENIID: last, Device: new(2), SubnetID: zones[0].subnet})
	event(8*time.Minute, introspect.Event{Kind: introspect.EventActionDone, ENIID: last, Reason: "warm-ip-target", DurationMS: new(int64(2140))})
	event(97*time.Second, introspect.Event{Kind: introspect.EventActionStarted, Reason: "waiting-pods", Message: "assign 5 secondary IPs", ENIID: last})
	event(96*time.Second, introspect.Event{Kind: introspect.EventActionFailed, Reason: "waiting-pods", Cause: string(cause.SubnetExhausted), ENIID: last, Message: "InsufficientFreeAddressesInSubnet"})
	// These lines are the daemon's (daemon/ipamd).
	assign := `"action":"assign","eni_id":"` + last + `"`
	refused := func(ago time.Duration) {
		log(ago, "warn", logline.TextAllocateFailed+" "+last+": AssignPrivateIpAddresses: InsufficientFreeAddressesInSubnet",
			assign+`,"cause":"subnet-exhausted","error":"AssignPrivateIpAddresses: InsufficientFreeAddressesInSubnet","duration":"0.21s"`)
	}
	log(97*time.Second, "info", "pool action started", assign+`,"network_card":0,"device":2,"addresses":5,"prefixes":0,"reason":"waiting-pods"`)
	refused(96 * time.Second)
	for _, w := range waits {
		event(w.ago, introspect.Event{Kind: introspect.EventADDFailed, Pod: &w.pod, Cause: string(cause.SubnetExhausted), Message: noAddresses})
		log(w.ago, "error", logline.TextNoAddress, fmt.Sprintf(`"cause":"subnet-exhausted","detail":%q,"pod":%q,"namespace":%q,"duration":"10.004s"`, noAddresses, w.pod.Name, w.pod.Namespace))
		if at(w.ago).After(now) {
			continue
		}
		d.Failures.Items = append([]introspect.Failure{{ // newest first
			At: *at(w.ago), Pod: w.pod, Cause: string(cause.SubnetExhausted), Title: "the subnet has no free addresses", Detail: noAddresses, WaitedMS: 10004, Transient: true,
		}}, d.Failures.Items...)
		d.KubeEvents = append(d.KubeEvents, watch.KubeEvent{
			Namespace: w.pod.Namespace, Name: w.pod.Name + ".17f0", UID: "event-" + w.pod.Name, At: *at(w.ago), Count: 1, Type: "Warning", Reason: "FailedCreatePodSandBox",
			Message: `Failed to create pod sandbox: plugin type="aws-cni" failed (add): add cmd: failed to assign an IP address to container`,
			Kind:    "Pod", Object: w.pod.Namespace + "/" + w.pod.Name, Node: m.name, Source: "kubelet",
		})
	}
	refused(11 * time.Second)
	if len(d.Failures.Items) > 0 {
		until := now.Add(24 * time.Second)
		d.Plan.Blocked = []introspect.BlockedCard{{Cause: string(cause.SubnetExhausted), Message: noAddresses}}
		d.Plan.Actions = []introspect.PlannedAction{{Kind: introspect.ActionWait, Reason: "subnet-exhausted", Title: "the subnet has no free addresses", Until: &until, Text: "wait: subnet-exhausted"}}
	}
}

// pods returns the machine's pods in Kubernetes.
func (m machine) pods(step int, now time.Time) []watch.Pod {
	var out []watch.Pod
	for _, e := range m.enis(step, now) {
		for _, c := range e.CIDRs {
			for _, a := range c.Addresses {
				if a.State == introspect.AddressAssigned {
					out = append(out, watch.Pod{PodRef: introspect.PodRef{Namespace: a.PodNamespace, Name: a.PodName}, Phase: "Running", IPs: []string{a.Address.String()}, StartedAt: a.AssignedAt})
				}
			}
		}
	}
	switch m.name {
	case Starved:
		for _, w := range waits {
			if since := at(w.ago + 10*time.Second); !at(w.ago).After(now) {
				out = append(out, watch.Pod{PodRef: w.pod, Phase: "Pending", Reason: "FailedCreatePodSandBox", StartedAt: since})
			}
		}
	case Trunk:
		out = append(out, asking()...)
	}
	return out
}

func line(ago time.Duration, level, msg, rest string) string {
	return fmt.Sprintf(`{"level":%q,"ts":%q,"msg":%q,%s}`, level, at(ago).Format("2006-01-02T15:04:05.000Z"), msg, rest)
}

// wiring returns the kernel state of the pod with the j-th address of the i-th CIDR.
func (m machine) wiring(i, j int) *introspect.NodePod {
	cidrs := 0
	for _, e := range m.enis(opened, End()) {
		for _, c := range e.CIDRs {
			if cidrs++; cidrs != i+1 {
				continue
			}
			a := c.Addresses[j]
			host := netip.PrefixFrom(a.Address, 32)
			link := fmt.Sprintf("eni7c1f60d2a%02x%d", i, m.i)
			seen := &introspect.PodKernel{
				Link:       &introspect.PodLink{Name: link, Index: 14 + i, Kind: "veth", MAC: fmt.Sprintf("9a:1f:5e:02:17:%02x", i+1), MTU: 9001, Up: true, Running: true},
				Rules:      []introspect.PodRule{{Priority: 512, To: host, Table: 254}},
				Routes:     []introspect.PodRoute{{Table: 254, To: host, Link: link}},
				Neighbours: []introspect.PodNeighbour{{Address: a.Address, Link: link, MAC: fmt.Sprintf("0e:3b:77:91:d4:%02x", i+1), State: "reachable"}},
			}
			if !e.Primary {
				gateway := netip.MustParsePrefix(zones[m.zone].cidr).Addr().Next()
				seen.Rules = append(seen.Rules, introspect.PodRule{Priority: 1536, From: host, Table: *e.RouteTable})
				seen.Tables = []introspect.PodRoute{
					{Table: *e.RouteTable, To: netip.MustParsePrefix("0.0.0.0/0"), Gateway: gateway, Link: fmt.Sprintf("ens%d", 5+e.Device)},
					{Table: *e.RouteTable, To: netip.PrefixFrom(gateway, 32), Link: fmt.Sprintf("ens%d", 5+e.Device)},
				}
			}
			return &introspect.NodePod{Pod: introspect.PodRef{Namespace: a.PodNamespace, Name: a.PodName}, Interfaces: []introspect.PodInterface{{
				Address: a.Address, ENIID: e.ID, Card: new(0), Device: new(e.Device), SubnetID: e.SubnetID, RouteTable: e.RouteTable, AssignedAt: a.AssignedAt, HostLink: link, Observed: seen,
			}}}
		}
	}
	return nil
}

// asking returns the pods that have a branch ENI or wait for one.
func asking() []watch.Pod {
	pod := func(name, phase, ip, eni string, vlan int, since time.Duration) watch.Pod {
		p := watch.Pod{PodRef: introspect.PodRef{Namespace: "pay", Name: name}, Phase: phase, Wants: true, StartedAt: at(since)}
		if ip == "" {
			p.Reason = "FailedCreatePodSandBox"
			return p
		}
		p.IPs = []string{ip}
		p.PodENI = fmt.Sprintf(`[{"eniId":%q,"ifAddress":"06:25:70:70:b1:%02x","privateIp":%q,"ipv6Addr":"","vlanId":%d,"subnetCidr":"10.0.8.0/21","subnetV6Cidr":"","associationID":"trunk-assoc-%d"}]`, eni, vlan, ip, vlan, vlan)
		return p
	}
	return []watch.Pod{
		pod("ledger-0", "Running", "10.0.12.199", "eni-0123456789abcdef0", 1, 9*time.Hour),
		pod("ledger-1", "Running", "10.0.12.201", "eni-0123456789abcdef1", 2, 8*time.Hour),
		pod("ledger-2", "Pending", "", "", 0, branchWait),
	}
}
