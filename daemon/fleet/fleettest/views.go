package fleettest

import (
	"fmt"
	"net/netip"
	"time"

	"cnictl/capacity/maxpods"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/ipam"
)

// Now returns the time of the fixed views.
func Now() time.Time { return time.Date(2026, 11, 21, 14, 2, 11, 0, time.UTC) }

// Secondary is an m5.large in secondary-IP mode with two of three ENIs: 7 assigned,
// 2 cooling, 9 free.
func Secondary() View {
	now := Now()
	first := eni("eni-0a1b2c3d4e5f60718", 0)
	second := eni("eni-0b2c3d4e5f6071829", 1)
	for i := range 9 {
		first.CIDRs = append(first.CIDRs, address(fmt.Sprintf("10.0.3.%d", 41+i)))
		second.CIDRs = append(second.CIDRs, address(fmt.Sprintf("10.0.4.%d", 11+i)))
	}
	for i := range 5 {
		assign(&first.CIDRs[i], 0, "shop", fmt.Sprintf("cart-7d9f-%d", i), now.Add(-time.Duration(i+1)*time.Hour))
	}
	assign(&second.CIDRs[0], 0, "shop", "pay-5c6b-x2", now.Add(-3*time.Minute))
	assign(&second.CIDRs[1], 0, "kube-system", "coredns-86bd-zz", now.Add(-50*time.Hour))
	rest(&second.CIDRs[2], 0, now.Add(-time.Hour), now.Add(-8*time.Second))
	rest(&second.CIDRs[3], 0, now.Add(-time.Hour), now.Add(-30*time.Second))
	rest(&second.CIDRs[4], 0, now.Add(-time.Hour), now.Add(-31*time.Second))
	v := View{
		Now: now, Cooldown: 30 * time.Second, Book: ipam.Snapshot{ENIs: []ipam.ENIState{first, second}},
		Summary:       base("ip-10-0-3-17", "i-0123456789abcdef0", "m5.large", now.Add(-200*time.Minute)),
		Config:        settings(),
		ENIConfigName: "default", ENIConfigKnown: true,
	}
	s := &v.Summary
	s.Cards = []introspect.CardSummary{{Mode: introspect.ModeSecondaryIP, OtherENIs: new(0), ENILimit: new(3), SlotsPerENI: new(9)}}
	s.Targets = introspect.Targets{WarmENI: new(1), WarmIP: new(5), MinimumIP: new(10), WarmPrefix: new(0), MaxENI: new(0)}
	s.MaxPods = maxPods(maxpods.Input{InstanceType: "m5.large", MaxPods: 29})
	s.Subnets = []introspect.Subnet{
		{ID: "subnet-0123456789abcdef0", CIDR: "10.0.0.0/19", Available: new(1801), AsOf: new(now.Add(-12 * time.Second))},
		{ID: "subnet-0fedcba9876543210", CIDR: "10.0.32.0/24", Available: new(12), AsOf: new(now.Add(-45 * time.Second))},
	}
	s.EC2Calls = []introspect.EC2Calls{
		{Action: "CreateNetworkInterface", Calls: 1, LastAt: new(now.Add(-3 * time.Minute))},
		{Action: "AttachNetworkInterface", Calls: 1, LastAt: new(now.Add(-3 * time.Minute))},
		{Action: "DescribeSubnets", Calls: 9, LastAt: new(now.Add(-12 * time.Second))},
	}
	s.ADDs = &introspect.RequestCounts{Total: 212, Failed: new(0), Causes: map[string]int{}}
	s.DELs = &introspect.RequestCounts{Total: 205, Failed: new(0), Causes: map[string]int{}}
	return v
}

// Starved is a c5.xlarge whose pool ran dry: two ADDs wait, EC2 throttles, a setting is wrong, an
// ENI is being attached.
func Starved() View {
	now := Now()
	v := View{
		Now: now, Cooldown: 30 * time.Second,
		Summary: base("ip-10-0-9-201", "i-0fedcba9876543210", "c5.xlarge", now.Add(-26*time.Hour)),
		Config:  settings(),
	}
	first := eni("eni-0c3d4e5f607182930", 0)
	for i := range 14 {
		first.CIDRs = append(first.CIDRs, address(fmt.Sprintf("10.0.9.%d", 21+i)))
		assign(&first.CIDRs[i], 0, "batch", fmt.Sprintf("job-%02d", i), now.Add(-time.Duration(i)*time.Minute))
	}
	v.Book.ENIs = []ipam.ENIState{first}
	s := &v.Summary
	s.Cards = []introspect.CardSummary{{Mode: introspect.ModeSecondaryIP, OtherENIs: new(0), ENILimit: new(4), SlotsPerENI: new(14)}}
	s.Targets = introspect.Targets{WarmENI: new(1), WarmIP: new(0), MinimumIP: new(0), WarmPrefix: new(0), MaxENI: new(0)}
	s.MaxPods = maxPods(maxpods.Input{InstanceType: "c5.xlarge", MaxPods: 58})
	s.WaitingADDs, s.WaitingSince = new(2), new(now.Add(-14*time.Second))
	s.Operations = []introspect.Operation{{Kind: "attach", Card: 0, Addresses: 14, Reason: "waiting-adds",
		StartedAt: new(now.Add(-2 * time.Second))}}
	s.Backoffs = []introspect.Backoff{{Scope: "attach", Until: now.Add(7 * time.Second), Cause: "ec2-throttled"}}
	s.LastErrors = []introspect.LastError{
		{At: now.Add(-3 * time.Second), Operation: "AttachNetworkInterface", Cause: "ec2-throttled",
			Message: "RequestLimitExceeded: Request limit exceeded.", Count: 3},
		{At: now.Add(-2 * time.Hour), Operation: "ADD", Cause: "pool-dry", Message: "no free address within 10 s", Count: 1},
	}
	s.Subnets = []introspect.Subnet{{ID: "subnet-0123456789abcdef0", CIDR: "10.0.0.0/19", Available: new(1790),
		AsOf: new(now.Add(-3 * time.Second))}}
	s.EC2Calls = []introspect.EC2Calls{
		{Action: "AttachNetworkInterface", Calls: 3, Errors: 3, LastAt: new(now.Add(-3 * time.Second))},
		{Action: "CreateNetworkInterface", Calls: 1, LastAt: new(now.Add(-9 * time.Second))},
	}
	s.ADDs = &introspect.RequestCounts{Total: 96, Failed: new(3), Causes: map[string]int{"pool-dry": 3}}
	s.DELs = &introspect.RequestCounts{Total: 79, Failed: new(0), Causes: map[string]int{}}
	s.ConfigProblems = new(2)
	return v
}

// Prefixes is an m5.4xlarge with prefix delegation, a trunk, and more max-pods than
// addresses.
func Prefixes() View {
	now := Now()
	v := View{
		Now: now, Cooldown: 30 * time.Second,
		Summary: base("ip-10-0-7-8", "i-00aa11bb22cc33dd4", "m5.4xlarge", now.Add(-70*time.Second)),
		Config:  settings(),
	}
	first := eni("eni-0d4e5f60718293a4b", 0)
	block := ipam.CIDRState{Prefix: netip.MustParsePrefix("10.0.7.16/28")}
	for i := range 11 {
		assign(&block, i, "web", fmt.Sprintf("front-%02d", i), now.Add(-time.Minute))
	}
	rest(&block, 11, now.Add(-time.Minute), now.Add(-2*time.Second))
	first.CIDRs = []ipam.CIDRState{block, {Prefix: netip.MustParsePrefix("10.0.7.32/28")}}
	trunk := eni("eni-0e5f60718293a4b5c", 7)
	trunk.Trunk = true
	v.Book.ENIs = []ipam.ENIState{first, trunk}
	s := &v.Summary
	s.Cards = []introspect.CardSummary{{Mode: introspect.ModePrefix, OtherENIs: new(0), ENILimit: new(2), SlotsPerENI: new(29),
		AddressLimit: new(464)}}
	s.Targets = introspect.Targets{WarmENI: new(1), WarmIP: new(0), MinimumIP: new(0), WarmPrefix: new(1), MaxENI: new(2)}
	s.MaxPods = maxPods(maxpods.Input{InstanceType: "m5.4xlarge", MaxPods: 737, PrefixDelegation: true, MaxENI: 2, TrunkAttached: true})
	s.Trunk = &introspect.Trunk{Enabled: true, Supported: new(true), ENIID: "eni-0e5f60718293a4b5c", BranchLimit: new(54), BranchUsed: new(3)}
	s.Subnets = []introspect.Subnet{{ID: "subnet-0fedcba9876543210", CIDR: "10.0.32.0/24", Available: new(9),
		AsOf: new(now.Add(-5 * time.Second))}}
	s.EC2Calls = []introspect.EC2Calls{{Action: "AssignPrivateIpAddresses", Calls: 2, LastAt: new(now.Add(-time.Minute))}}
	s.ADDs = &introspect.RequestCounts{Total: 12, Failed: new(0), Causes: map[string]int{}}
	s.DELs = &introspect.RequestCounts{Total: 1, Failed: new(0), Causes: map[string]int{}}
	return v
}

func base(node, instance, kind string, started time.Time) introspect.Summary {
	return introspect.Summary{
		Version: "v1.0.0", Node: node, InstanceID: instance, InstanceType: kind, IPFamily: "ipv4", StartedAt: &started,
		CustomNetworking: new(false), Cordoned: new(false), Terminating: new(false),
		WaitingADDs: new(0), Operations: []introspect.Operation{}, Backoffs: []introspect.Backoff{}, LastErrors: []introspect.LastError{},
		ConfigProblems: new(0),
	}
}

func eni(id ipam.ENIID, device int) ipam.ENIState {
	table := 254
	if device > 0 {
		table = device + 1
	}
	return ipam.ENIState{ENI: ipam.ENI{ID: id, Device: device, Primary: device == 0, RouteTable: table, SubnetID: "subnet-0123456789abcdef0"}}
}

func address(s string) ipam.CIDRState {
	return ipam.CIDRState{Prefix: netip.PrefixFrom(netip.MustParseAddr(s), 32)}
}

// nth returns the address at an offset in a CIDR.
func nth(c *ipam.CIDRState, offset int) netip.Addr {
	a := c.Prefix.Addr()
	for range offset {
		a = a.Next()
	}
	return a
}

func assign(c *ipam.CIDRState, offset int, namespace, name string, since time.Time) {
	c.Assigned++
	c.Records = append(c.Records, ipam.AddressState{
		Address: nth(c, offset), Sandbox: ipam.Sandbox{Network: "aws-cni", ContainerID: "sandbox-of-" + name, IfName: "eth0"},
		Pod: ipam.Pod{Namespace: namespace, Name: name, Interfaces: 1}, AssignedAt: since,
	})
}

func rest(c *ipam.CIDRState, offset int, assigned, unassigned time.Time) {
	c.Records = append(c.Records, ipam.AddressState{Address: nth(c, offset), AssignedAt: assigned, UnassignedAt: unassigned})
}
