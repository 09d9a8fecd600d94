package tour

import (
	"fmt"
	"net/netip"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/watch"
)

// Documents answers in the place of the nodes for what a recording has not: a plan,
// events, failed ADDs, the log, a pod's wiring, and the pods that ask for branch ENIs.
// Of the nodes without a part in the story it knows nothing.
func Documents(d watch.Detail, want watch.Want) watch.Detail {
	give := func(w watch.Want, do func()) {
		if want&w != 0 {
			do()
			delete(d.Errors, w)
		}
	}
	switch d.Node {
	case Starved:
		give(watch.WantPlan, func() { d.Plan = starvedPlan() })
		give(watch.WantEvents, func() { d.Events = starvedEvents() })
		give(watch.WantFailures, func() { d.Failures = starvedFailures() })
		give(watch.WantLogs, func() { d.Logs = starvedLogs() })
	case Trunk:
		give(watch.WantPlan, func() { d.Plan = &introspect.NodePlan{} })
		give(watch.WantEvents, func() { d.Events = trunkEvents() })
		give(watch.WantFailures, func() { d.Failures = &introspect.NodeFailures{} })
		give(watch.WantLogs, func() { d.Logs = trunkLogs() })
		give(watch.WantPod, func() { d.Pod = wiring() })
		give(watch.WantPods, func() { d.Pods = asking() })
	}
	return d
}

const noAddresses = "subnet subnet-0aa11bb22cc33dd44 has no free addresses, next attempt in 24s"

func starvedPlan() *introspect.NodePlan {
	until := End().Add(24 * time.Second)
	return &introspect.NodePlan{
		Blocked: []introspect.BlockedCard{{Cause: string(cause.SubnetExhausted), Message: noAddresses}},
		Actions: []introspect.PlannedAction{{Kind: introspect.ActionWait, Reason: "subnet-exhausted", Title: "the subnet has no free addresses", Until: &until, Text: "wait: subnet-exhausted"}},
	}
}

func starvedEvents() *introspect.NodeEvents {
	waiting := introspect.PodRef{Namespace: "shop", Name: "checkout-6c8d4f-9x2lq"}
	last := machines()[0].eni(2)
	return &introspect.NodeEvents{Epoch: "tour", Next: 7, Items: []introspect.Event{
		{Seq: 1, At: *at(26 * time.Hour), Kind: introspect.EventStarted},
		{Seq: 2, At: *at(8 * time.Minute), Kind: introspect.EventENIAttached, ENIID: last, Device: ptr(2), SubnetID: zones[0].subnet},
		{Seq: 3, At: *at(8 * time.Minute), Kind: introspect.EventActionDone, ENIID: last, Reason: "warm-ip-target", DurationMS: ptr(int64(2140))},
		{Seq: 4, At: *at(97 * time.Second), Kind: introspect.EventActionStarted, Reason: "waiting-pods", Message: "assign 5 secondary IPs", ENIID: last},
		{Seq: 5, At: *at(96 * time.Second), Kind: introspect.EventActionFailed, Reason: "waiting-pods", Cause: string(cause.SubnetExhausted), ENIID: last, Message: "InsufficientFreeAddressesInSubnet"},
		{Seq: 6, At: *at(86 * time.Second), Kind: introspect.EventADDFailed, Pod: &waiting, Cause: string(cause.SubnetExhausted), Message: noAddresses},
	}}
}

func starvedFailures() *introspect.NodeFailures {
	var out introspect.NodeFailures
	for i := range 3 {
		out.Items = append(out.Items, introspect.Failure{
			At: *at(time.Duration(11+25*i) * time.Second), Pod: introspect.PodRef{Namespace: "shop", Name: fmt.Sprintf("checkout-6c8d4f-%dx2lq", 9-i)},
			Cause: string(cause.SubnetExhausted), Title: "the subnet has no free addresses", Detail: noAddresses, WaitedMS: 10004, Transient: true,
		})
	}
	return &out
}

func starvedLogs() *introspect.NodeLogs {
	return &introspect.NodeLogs{Path: "/host/var/log/aws-routed-eni/ipamd.log", Lines: []string{
		line(97*time.Second, "info", "assign addresses", `"eni_id":"`+machines()[0].eni(2)+`","count":5,"reason":"waiting-pods"`),
		line(96*time.Second, "warn", "assign addresses", `"eni_id":"`+machines()[0].eni(2)+`","error":"InsufficientFreeAddressesInSubnet","cause":"subnet-exhausted"`),
		line(86*time.Second, "warn", "ADD failed", `"namespace":"shop","pod":"checkout-6c8d4f-9x2lq","cause":"subnet-exhausted","waited":"10s"`),
		line(36*time.Second, "warn", "ADD failed", `"namespace":"shop","pod":"checkout-6c8d4f-8x2lq","cause":"subnet-exhausted","waited":"10s"`),
		line(11*time.Second, "warn", "assign addresses", `"eni_id":"`+machines()[0].eni(2)+`","error":"InsufficientFreeAddressesInSubnet","cause":"subnet-exhausted","repeated":9`),
	}}
}

func line(ago time.Duration, level, msg, rest string) string {
	return fmt.Sprintf(`{"level":%q,"ts":%q,"msg":%q,%s}`, level, at(ago).Format("2006-01-02T15:04:05.000Z"), msg, rest)
}

func trunkEvents() *introspect.NodeEvents {
	pod, address := wiring().Pod, wiring().Interfaces[0].Address
	return &introspect.NodeEvents{Epoch: "tour", Next: 2, Items: []introspect.Event{
		{Seq: 1, At: *at(390 * time.Minute), Kind: introspect.EventAddressAssigned, Pod: &pod, Address: address, ENIID: machines()[2].eni(0)},
	}}
}

func trunkLogs() *introspect.NodeLogs {
	return &introspect.NodeLogs{Path: "/host/var/log/aws-routed-eni/ipamd.log", Lines: []string{
		line(3*time.Minute, "info", "assigned address", `"namespace":"shop","pod":"cart-7d9f5b-24bbd","ip":"10.0.10.2"`),
		line(50*time.Second, "info", "assigned prefixes", `"eni_id":"`+machines()[2].eni(0)+`","count":1,"reason":"warm-prefix-target"`),
	}}
}

// wiring is the first address of the node with prefixes as its kernel has it.
func wiring() *introspect.NodePod {
	a := netip.MustParseAddr("10.0.10.0")
	host := netip.PrefixFrom(a, 32)
	return &introspect.NodePod{Pod: introspect.PodRef{Namespace: "data", Name: "ingest-5f7c9-20ddf"}, Interfaces: []introspect.PodInterface{{
		Address: a, ENIID: machines()[2].eni(0), Card: ptr(0), Device: ptr(0), SubnetID: zones[2].subnet, RouteTable: ptr(254), AssignedAt: at(390 * time.Minute), HostLink: "eni7c1f60d2ab9",
		Observed: &introspect.PodKernel{
			Link:       &introspect.PodLink{Name: "eni7c1f60d2ab9", Index: 14, Kind: "veth", MAC: "9a:1f:5e:02:17:c3", MTU: 9001, Up: true, Running: true},
			Rules:      []introspect.PodRule{{Priority: 512, To: host, Table: 254}},
			Routes:     []introspect.PodRoute{{Table: 254, To: host, Link: "eni7c1f60d2ab9"}},
			Neighbours: []introspect.PodNeighbour{{Address: a, Link: "eni7c1f60d2ab9", MAC: "0e:3b:77:91:d4:aa", State: "reachable"}},
		},
	}}}
}

// asking are pods with branch ENIs, or that wait for one.
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
		pod("ledger-2", "Pending", "", "", 0, 90*time.Second),
	}
}
