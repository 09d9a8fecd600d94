package fakeaws

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"cnictl/capacity/limits"
	"cnictl/testenv/aws/ec2model"
)

// World is one AWS account in one region. All methods may be called concurrently.
type World struct {
	opts Options

	mu           sync.Mutex // guards everything down to deliverMu
	vpcs         map[string]*VPC
	subnets      map[string]*subnet
	groups       map[string]*SecurityGroup
	instances    map[string]*instance
	enis         map[string]*ENI
	owners       map[netip.Prefix]string // CIDR as assigned → ENI id
	tokens       map[string]string       // ClientToken → ENI id
	held         map[string]Hold         // attachment id → the hold that keeps the link away
	types        map[string]limits.Instance
	routes       map[string][]Route // by VPC
	reservations []Reservation
	counters     map[string]uint64 // by id kind
	closed       bool
	timers       map[*time.Timer]struct{}
	pending      []Change
	listings     []listing // what EC2 lists while it lags, oldest first; otherwise empty
	trunks       trunks
	cluster      *Cluster // nil if EKS has none
	roles        map[string]role

	deliverMu      sync.Mutex // held while subscribers run; taken before mu
	subscribers    []subscriber
	nextSubscriber int

	wire wire // what the servers need: latencies, logs, faults
	done chan struct{}
}

type subnet struct {
	Subnet
	pool     *ec2model.Space
	pool6    *ec2model.Space6 // nil without an IPv6 CIDR
	occupied map[netip.Prefix]bool
}

type instance struct {
	Instance
	limits  limits.Instance
	started time.Time
	views   []view        // what IMDS shows, oldest first
	attach  chan struct{} // holds a token while an attachment of this instance runs (Options.SerialiseAttach)
}

// NewWorld returns an empty world. Close it when done.
func NewWorld(opts Options) *World {
	opts = opts.withDefaults()
	w := &World{
		opts:      opts,
		vpcs:      make(map[string]*VPC),
		subnets:   make(map[string]*subnet),
		groups:    make(map[string]*SecurityGroup),
		instances: make(map[string]*instance),
		enis:      make(map[string]*ENI),
		owners:    make(map[netip.Prefix]string),
		tokens:    make(map[string]string),
		held:      make(map[string]Hold),
		types:     make(map[string]limits.Instance),
		routes:    make(map[string][]Route),
		roles:     make(map[string]role),
		counters:  make(map[string]uint64),
		timers:    make(map[*time.Timer]struct{}),
		done:      make(chan struct{}),
	}
	for _, t := range opts.Types {
		w.types[t.Type] = t
	}
	w.wire = newWire(opts, rand.New(rand.NewPCG(opts.Seed, 0x0fa4e)))
	w.SetDescribeLag(opts.DescribeLag)
	return w
}

// Close cancels pending attachments and wakes calls that wait for their latency. The
// world can still be read.
func (w *World) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	w.closed = true
	close(w.done)
	for t := range w.timers {
		t.Stop()
	}
	clear(w.timers)
}

// Region returns the world's region.
func (w *World) Region() string { return w.opts.Region }

// update runs f with the world locked and then notifies subscribers of the changes. f must
// check everything before it changes anything: if it fails, it has changed nothing.
func (w *World) update(f func() error) error {
	w.mu.Lock()
	err := f()
	if err == nil {
		w.list()
	}
	w.mu.Unlock()
	w.deliver()
	return err
}

// later runs f in a separate update after d or, if d is not positive, immediately within the
// caller's. The caller holds mu.
func (w *World) later(d time.Duration, f func()) {
	if d <= 0 || w.closed {
		f()
		return
	}
	var t *time.Timer
	t = time.AfterFunc(d, func() {
		_ = w.update(func() error { // f cannot fail
			if _, wanted := w.timers[t]; wanted {
				delete(w.timers, t)
				f()
			}
			return nil
		})
	})
	w.timers[t] = struct{}{}
}

// newID counts ids like eni-0fa4e000000000001.
func (w *World) newID(kind string) string {
	w.counters[kind]++
	return fmt.Sprintf("%s-0fa4e%012x", kind, w.counters[kind])
}

func (w *World) newMAC() string {
	w.counters["mac"]++
	n := w.counters["mac"]
	return fmt.Sprintf("02:fa:4e:%02x:%02x:%02x", byte(n>>16), byte(n>>8), byte(n))
}

// AddVPC adds a VPC with IPv4 and IPv6 CIDRs and its default security group.
func (w *World) AddVPC(cidrs ...netip.Prefix) VPC {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := &VPC{ID: w.newID("vpc")}
	for _, c := range cidrs {
		if c.Addr().Is4() {
			v.CIDRs = append(v.CIDRs, c.Masked())
		} else {
			v.IPv6CIDRs = append(v.IPv6CIDRs, c.Masked())
		}
	}
	w.vpcs[v.ID] = v
	g := w.newID("sg")
	w.groups[g] = &SecurityGroup{ID: g, VPCID: v.ID, Name: "default"}
	return v.clone()
}

func (v *VPC) clone() VPC {
	return VPC{ID: v.ID, CIDRs: slices.Clone(v.CIDRs), IPv6CIDRs: slices.Clone(v.IPv6CIDRs)}
}

// AddVPCCIDR associates another CIDR with a VPC.
func (w *World) AddVPCCIDR(id string, cidr netip.Prefix) error {
	return w.update(func() error {
		v := w.vpcs[id]
		if v == nil {
			return fail("InvalidVpcID.NotFound", "The vpc ID '%s' does not exist", id)
		}
		v.CIDRs = append(v.CIDRs, cidr.Masked())
		w.refreshViews(func(i *instance) bool { return i.VPCID == id })
		return nil
	})
}

// AddSecurityGroup adds a security group to a VPC and returns its id.
func (w *World) AddSecurityGroup(vpcID, name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := w.newID("sg")
	w.groups[id] = &SecurityGroup{ID: id, VPCID: vpcID, Name: name}
	return id
}

func (w *World) defaultGroup(vpcID string) string {
	for _, id := range slices.Sorted(maps.Keys(w.groups)) {
		if g := w.groups[id]; g.VPCID == vpcID && g.Name == "default" {
			return id
		}
	}
	return ""
}

// AddSubnet adds a subnet.
func (w *World) AddSubnet(s SubnetSpec) (Subnet, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := w.vpcs[s.VPCID]
	if v == nil {
		return Subnet{}, fail("InvalidVpcID.NotFound", "The vpc ID '%s' does not exist", s.VPCID)
	}
	if err := v.checkSubnet(s); err != nil {
		return Subnet{}, err
	}
	for _, o := range w.subnets {
		if o.VPCID == s.VPCID && ((o.CIDR.IsValid() && s.CIDR.IsValid() && o.CIDR.Overlaps(s.CIDR)) || (s.IPv6CIDR.IsValid() && o.IPv6CIDR.IsValid() && o.IPv6CIDR.Overlaps(s.IPv6CIDR))) {
			return Subnet{}, fail("InvalidSubnet.Conflict", "The CIDR '%s' conflicts with another subnet", s.CIDR)
		}
	}
	if s.ID == "" {
		s.ID = w.newID("subnet")
	}
	if w.subnets[s.ID] != nil {
		return Subnet{}, fail(codeInvalidValue, "subnet '%s' exists already", s.ID)
	}
	if s.AZ == "" {
		s.AZ = w.opts.Region + "a"
	}
	n := &subnet{
		Subnet: Subnet{ID: s.ID, VPCID: s.VPCID, AZ: s.AZ, CIDR: s.CIDR.Masked(), Tags: tagsOf(s.Tags), AssignIPv6: s.AssignIPv6},
		pool:   ec2model.NewSpace(s.CIDR), occupied: make(map[netip.Prefix]bool),
	}
	if s.IPv6CIDR.IsValid() {
		n.IPv6CIDR, n.pool6 = s.IPv6CIDR.Masked(), ec2model.NewSpace6(s.IPv6CIDR)
	}
	w.subnets[s.ID] = n
	return n.public(), nil
}

func (v *VPC) checkSubnet(s SubnetSpec) error {
	if s.IPv6CIDR.IsValid() && (s.IPv6CIDR.Addr().Is4() || s.IPv6CIDR.Bits() != 64) {
		return fail("InvalidSubnet.Range", "The IPv6 CIDR '%s' is invalid: a /64 is accepted", s.IPv6CIDR)
	}
	if !s.CIDR.IsValid() && s.IPv6CIDR.IsValid() {
		return nil
	}
	if !s.CIDR.IsValid() || !s.CIDR.Addr().Is4() || s.CIDR.Bits() < 16 || s.CIDR.Bits() > 28 {
		return fail("InvalidSubnet.Range", "The CIDR '%s' is invalid: an IPv4 block of /16 to /28 is accepted", s.CIDR)
	}
	if !slices.ContainsFunc(v.CIDRs, func(c netip.Prefix) bool { return c.Bits() <= s.CIDR.Bits() && c.Contains(s.CIDR.Addr()) }) {
		return fail("InvalidSubnet.Range", "The CIDR '%s' is not within the VPC's", s.CIDR)
	}
	return nil
}

func (s *subnet) public() Subnet {
	c := s.Subnet
	c.Tags = maps.Clone(s.Tags)
	c.Free = s.pool.Free()
	return c
}

// Occupy takes the n highest free addresses of a subnet, or fewer if there are not enough,
// as if resources outside the world's model held them.
func (w *World) Occupy(subnetID string, n int) (taken int, err error) {
	err = w.update(func() error {
		s := w.subnets[subnetID]
		if s == nil {
			return noSubnet(subnetID)
		}
		found := s.pool.FindLast(n)
		s.occupy(found)
		taken = len(found)
		return nil
	})
	return taken, err
}

// Fragment takes the highest free address of every completely free aligned /28 of a
// subnet, so that no prefix fits although most addresses stay free.
func (w *World) Fragment(subnetID string) error {
	return w.update(func() error {
		s := w.subnets[subnetID]
		if s == nil {
			return noSubnet(subnetID)
		}
		for _, b := range s.pool.FindBlocks(s.pool.FreeBlocks(), 0) {
			a := b.Addr().As4()
			a[3] += ec2model.BlockSize - 1
			s.occupy([]netip.Prefix{single(netip.AddrFrom4(a))})
		}
		return nil
	})
}

// Vacate returns everything that Occupy and Fragment took.
func (w *World) Vacate(subnetID string) error {
	return w.update(func() error {
		s := w.subnets[subnetID]
		if s == nil {
			return noSubnet(subnetID)
		}
		for c := range s.occupied {
			s.pool.Mark(c, false)
		}
		clear(s.occupied)
		return nil
	})
}

func (s *subnet) occupy(addrs []netip.Prefix) {
	for _, a := range addrs {
		s.pool.Mark(a, true)
		s.occupied[a] = true
	}
}

// typeLimits returns the limits of an instance type.
func (w *World) typeLimits(name string) (limits.Instance, bool) {
	if l, ok := w.types[name]; ok {
		return l, true
	}
	return limits.Lookup(name)
}

func tagsOf(t map[string]string) map[string]string {
	if t == nil {
		return map[string]string{}
	}
	return maps.Clone(t)
}

// Tags returns a resource's tags (ENI, subnet, instance) and whether it exists.
func (w *World) Tags(id string) (map[string]string, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.tagsFor(id)
	return maps.Clone(t), t != nil
}

func (w *World) tagsFor(id string) map[string]string {
	switch kind, _, _ := strings.Cut(id, "-"); kind {
	case "eni":
		if e := w.enis[id]; e != nil {
			return e.Tags
		}
	case "subnet":
		if s := w.subnets[id]; s != nil {
			return s.Tags
		}
	case "i":
		if i := w.instances[id]; i != nil {
			return i.Tags
		}
	}
	return nil
}

const maxTags = 50 // EC2's limit of tags per resource

// SetTags adds tags to resources, replacing the values of existing keys.
func (w *World) SetTags(tags map[string]string, ids ...string) error {
	return w.update(func() error {
		for _, id := range ids {
			have := w.tagsFor(id)
			if have == nil {
				if strings.HasPrefix(id, "eni-") {
					return noENI(id)
				}
				return fail(codeResourceNotFound, "The ID '%s' is not valid", id)
			}
			all := maps.Clone(have)
			maps.Copy(all, tags)
			if len(all) > maxTags {
				return fail(codeTagLimit, "'%s' would have more than %d tags", id, maxTags)
			}
		}
		for _, id := range ids {
			maps.Copy(w.tagsFor(id), tags)
		}
		return nil
	})
}
