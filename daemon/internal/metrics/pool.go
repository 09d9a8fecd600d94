package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"cnictl/daemon/ipam"
)

// PoolGauges are the state of the pool at one moment, over all network cards.
type PoolGauges struct {
	ENIs         int // in the address book
	MaxENIs      int // attachable, without unmanaged ones
	MaxIPs       int // addresses that MaxENIs can hold for pods; 0 in IPv6
	Total        int // addresses of every kind, including those of excluded ENIs
	Assigned     int
	Cooling      int
	IPv4Prefixes int
	Unplaced     int // allocations whose address is on no known ENI
	MaxPods      int // of the node; 0: unknown, no series
	PodCapacity  int // pods that the node's addresses can serve; 0: unknown or unlimited, no series

	Reconciled time.Time    // when the pool was last compared with the attached ENIs
	Branches   *BranchGauge // nil without security groups for pods: no series

	ByCIDR []CIDRGauge // each CIDR once
	ByENI  []ENIGauge  // each ENI once

	Backoffs []BackoffGauge
	Subnets  []SubnetGauge // each subnet once
}

// SubnetGauge is what EC2 reported for a subnet that new ENIs may be created in.
type SubnetGauge struct {
	Subnet string // id
	Free   int    // addresses
}

// BranchGauge is the trunk of a node whose pods may have security groups.
type BranchGauge struct {
	Trunk bool // attached
	Used  int  // by running pods; -1: unknown, no series
	Max   int  // of the instance type
}

// CIDRGauge is one secondary IP or prefix.
type CIDRGauge struct {
	CIDR     string
	Assigned int
}

// ENIGauge is one ENI.
type ENIGauge struct {
	ENI      ipam.ENIID
	Assigned int
}

// BackoffGauge is one back-off that currently keeps a request from EC2.
type BackoffGauge struct {
	Target string // "attach", "release", or the id of an ENI or a subnet
	Cause  string // a code of daemon/api/cause
	Left   time.Duration
}

// FromSnapshot counts a snapshot of the address book. The caller has to add limits and
// back-offs, which are not in it. As in upstream, a CIDR has a series once one of its
// addresses has been assigned, so hundreds of idle secondary IPs cost nothing.
func FromSnapshot(s ipam.Snapshot, now time.Time, cooldown time.Duration) PoolGauges {
	g := PoolGauges{ENIs: len(s.ENIs), Unplaced: len(s.Unplaced)}
	for i := range s.ENIs {
		e := &s.ENIs[i]
		onENI := 0
		for j := range e.CIDRs {
			c := &e.CIDRs[j]
			onENI += c.Assigned
			g.Total += c.Size()
			g.Cooling += c.Cooling(now, cooldown)
			if c.IsPrefix() && c.Prefix.Addr().Is4() {
				g.IPv4Prefixes++
			}
			if len(c.Records) > 0 {
				g.ByCIDR = append(g.ByCIDR, CIDRGauge{c.Prefix.String(), c.Assigned})
			}
		}
		g.Assigned += onENI
		g.ByENI = append(g.ByENI, ENIGauge{e.ID, onENI})
	}
	return g
}

// poolDescs describe the pool's gauges, whose values exist only during a scrape.
type poolDescs struct {
	enis, maxENIs, maxIPs, total, assigned, cooling, prefixes, quarantined, maxPods, podCapacity, reconciled, trunk, branches, maxBranches, byCIDR, byENI, backoff, subnet *prometheus.Desc
}

func newPoolDescs() poolDescs {
	poolDesc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return poolDescs{
		enis:        poolDesc("awscni_eni_allocated", "The number of ENIs allocated"),
		maxENIs:     poolDesc("awscni_eni_max", "The maximum number of ENIs that can be attached to the instance, accounting for unmanaged ENIs"),
		maxIPs:      poolDesc("awscni_ip_max", "The maximum number of IP addresses that can be allocated to the instance"),
		total:       poolDesc("awscni_total_ip_addresses", "The total number of IP addresses"),
		assigned:    poolDesc("awscni_assigned_ip_addresses", "The number of IP addresses assigned to pods"),
		cooling:     poolDesc("awscni_cooling_ip_addresses", "The number of IP addresses in cooldown"),
		prefixes:    poolDesc("awscni_total_ipv4_prefixes", "The total number of IPv4 prefixes"),
		quarantined: poolDesc("awscni_quarantined_ip_addresses", "The number of pods whose address is not on a known ENI; nothing is released until it is"),
		maxPods:     poolDesc("awscni_max_pods", "The number of pods that the node may run"),
		podCapacity: poolDesc("awscni_pod_capacity", "The number of pods that the addresses and branch ENIs of the node can serve, host network included"),
		reconciled:  poolDesc("awscni_last_reconcile_timestamp_seconds", "The Unix time at which the pool was last compared with what is attached"),
		trunk:       poolDesc("awscni_trunk_eni", "Whether the trunk ENI for security groups for pods is attached"),
		branches:    poolDesc("awscni_branch_eni", "The number of branch ENIs in use by pods"),
		maxBranches: poolDesc("awscni_branch_eni_max", "The number of branch ENIs that the instance type can have"),
		byCIDR:      poolDesc("awscni_assigned_ip_per_cidr", "The total number of IP addresses assigned per cidr", "cidr"),
		byENI:       poolDesc("awscni_assigned_ip_per_eni", "The number of allocated ips partitioned by eni", "eni"),
		backoff:     poolDesc("awscni_ec2_backoff_seconds", "The remaining back-off after EC2 refused a request, by target and cause", "target", "cause"),
		subnet:      poolDesc("awscni_subnet_free_ip_addresses", "The number of free IP addresses that EC2 reported for a subnet", "subnet"),
	}
}

// poolCollector turns a PoolGauges into series at each scrape.
type poolCollector struct {
	m *Metrics
	poolDescs
}

func (c poolCollector) Describe(ch chan<- *prometheus.Desc) {
	d := c.poolDescs
	for _, desc := range []*prometheus.Desc{d.enis, d.maxENIs, d.maxIPs, d.total, d.assigned, d.cooling, d.prefixes, d.quarantined, d.maxPods, d.podCapacity, d.reconciled, d.trunk, d.branches, d.maxBranches, d.byCIDR, d.byENI, d.backoff, d.subnet} {
		ch <- desc
	}
}

func (c poolCollector) Collect(ch chan<- prometheus.Metric) {
	var g PoolGauges
	if pool := c.m.pool.Load(); pool != nil {
		g = (*pool)()
	}
	d := c.poolDescs
	send := func(desc *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	send(d.enis, float64(g.ENIs))
	send(d.maxENIs, float64(g.MaxENIs))
	send(d.maxIPs, float64(g.MaxIPs))
	send(d.total, float64(g.Total))
	send(d.assigned, float64(g.Assigned))
	send(d.cooling, float64(g.Cooling))
	send(d.prefixes, float64(g.IPv4Prefixes))
	send(d.quarantined, float64(g.Unplaced))
	if g.MaxPods > 0 {
		send(d.maxPods, float64(g.MaxPods))
	}
	if g.PodCapacity > 0 {
		send(d.podCapacity, float64(g.PodCapacity))
	}
	if !g.Reconciled.IsZero() {
		send(d.reconciled, float64(g.Reconciled.Unix()))
	}
	if b := g.Branches; b != nil {
		attached := 0.0
		if b.Trunk {
			attached = 1
		}
		send(d.trunk, attached)
		send(d.maxBranches, float64(b.Max))
		if b.Used >= 0 {
			send(d.branches, float64(b.Used))
		}
	}
	for _, x := range g.ByCIDR {
		send(d.byCIDR, float64(x.Assigned), x.CIDR)
	}
	for _, x := range g.ByENI {
		send(d.byENI, float64(x.Assigned), string(x.ENI))
	}
	for _, x := range g.Backoffs {
		send(d.backoff, max(x.Left, 0).Seconds(), x.Target, x.Cause)
	}
	for _, x := range g.Subnets {
		send(d.subnet, float64(x.Free), x.Subnet)
	}
}
