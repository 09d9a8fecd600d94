package resync

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cnictl/daemon/ipam"
)

var (
	morning  = time.Date(2026, 8, 21, 9, 0, 0, 0, time.UTC)
	asValues = cmp.Options{cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}), cmpopts.EquateEmpty()}
)

const self = "i-0123456789abcdef0"

func prefixes(list ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, s := range list {
		if !strings.Contains(s, "/") {
			s += "/32"
		}
		all = append(all, netip.MustParsePrefix(s))
	}
	return all
}

// described is ENI n as EC2 describes it: primary address 10.0.n.4, on device n.
func described(n int, cidrs ...string) ENI {
	e := ENI{
		ID: ipam.ENIID(fmt.Sprintf("eni-%d", n)), Status: "in-use", InterfaceType: "interface", SubnetID: "subnet-a",
		AttachmentID: fmt.Sprintf("eni-attach-%d", n), AttachmentStatus: AttachmentAttached, InstanceID: self, Device: n,
		PrimaryIP: netip.AddrFrom4([4]byte{10, 0, byte(n), 4}),
	}
	for _, p := range prefixes(cidrs...) {
		if p.IsSingleIP() {
			e.SecondaryIPs = append(e.SecondaryIPs, p.Addr())
		} else {
			e.Prefixes = append(e.Prefixes, p)
		}
	}
	return e
}

// with returns a changed description.
func with(e ENI, change func(*ENI)) ENI {
	change(&e)
	return e
}

func tagged(e ENI, key, value string) ENI {
	return with(e, func(e *ENI) { e.Tags = map[string]string{key: value} })
}

// shownAs is the metadata's view of described ENIs.
func shownAs(enis ...ENI) MetadataView {
	v := MetadataView{State: Known, At: morning}
	for _, e := range enis {
		v.Interfaces = append(v.Interfaces, Interface{
			ENI: e.ID, Card: e.Card, Device: e.Device, SubnetID: e.SubnetID,
			IPv4s: append([]netip.Addr{e.PrimaryIP}, e.SecondaryIPs...), Prefixes: e.Prefixes, IPv6Prefixes: e.IPv6Prefixes,
		})
	}
	return v
}

func listed(enis ...ENI) EC2View { return EC2View{State: Known, At: morning, ENIs: enis} }

func routed(addrs ...string) KernelView {
	v := KernelView{State: Known}
	for _, a := range addrs {
		v.Routes = append(v.Routes, PodRoute{Address: netip.MustParseAddr(a), HostLink: "eni" + a})
	}
	return v
}

func entryOf(n int) ipam.ENI {
	e := described(n)
	return ipam.ENI{ID: e.ID, Device: n, Primary: n == 0, SubnetID: e.SubnetID, PrimaryIP: e.PrimaryIP, AttachedAt: morning.Add(-time.Hour)}
}

func attach(n int, cidrs ...string) ipam.Event {
	return ipam.AttachENI{ENI: entryOf(n), CIDRs: prefixes(cidrs...)}
}

func pod(addr string) ipam.Restore {
	return ipam.Restore{Sandbox: ipam.Sandbox{Network: "aws-cni", ContainerID: addr, IfName: "eth0"},
		Pod: ipam.Pod{Namespace: "shop", Name: addr}, Address: netip.MustParseAddr(addr), AssignedAt: morning.Add(-time.Hour)}
}

func bookOf(t testing.TB, at time.Time, events ...ipam.Event) *ipam.Book {
	t.Helper()
	b := ipam.New(ipam.Options{Cooldown: 30 * time.Second})
	for _, ev := range events {
		if _, err := b.Apply(at, ev); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func policy() ReconcilePolicy {
	return ReconcilePolicy{InstanceID: self, PrimaryENI: "eni-0", ManageUntagged: true}
}

func noteKinds(notes []Note) (kinds []NoteKind) {
	for _, n := range notes {
		kinds = append(kinds, n.Kind)
	}
	return kinds
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	var (
		e0     = described(0, "10.0.0.10", "10.0.0.11")
		e1     = described(1, "10.0.1.16/28")
		plain  = []ipam.Event{attach(0, "10.0.0.10", "10.0.0.11"), attach(1, "10.0.1.16/28")}
		two    = func(more ...ipam.Event) []ipam.Event { return append(slices.Clone(plain), more...) }
		lost10 = ipam.QuarantineCIDRs{ID: "eni-0", CIDRs: prefixes("10.0.0.10")}
		lostE1 = ipam.QuarantineENI{ID: "eni-1"}
		part   = described(0, "10.0.0.11")
	)
	rows := []struct {
		name   string
		book   []ipam.Event
		bookAt time.Duration // before the views; the ENIs are always an hour old
		in     ReconcileInput
		want   ReconcileResult // only the kinds of Notes are compared
		notes  []NoteKind
	}{
		{name: "all agree", book: two(), in: ReconcileInput{EC2: listed(e0, e1), Metadata: shownAs(e0, e1), Kernel: routed()},
			want: ReconcileResult{Settled: true}},
		{name: "metadata agrees, EC2 not asked", book: two(), in: ReconcileInput{Metadata: shownAs(e0, e1)}},
		{name: "metadata lacks an address", book: two(), in: ReconcileInput{Metadata: shownAs(part, e1), Kernel: routed()},
			want: ReconcileResult{NeedEC2: true}, notes: []NoteKind{MetadataDiffers}},
		{name: "metadata shows more", book: two(), in: ReconcileInput{Metadata: shownAs(described(0, "10.0.0.10", "10.0.0.11", "10.0.0.12"), e1)},
			want: ReconcileResult{NeedEC2: true}, notes: []NoteKind{MetadataDiffers}},
		{name: "what it shows more was given back a moment ago", book: two(), in: ReconcileInput{
			Metadata: shownAs(described(0, "10.0.0.10", "10.0.0.11", "10.0.0.12"), e1),
			Released: []Release{{prefixes("10.0.0.12")[0], morning.Add(-ReleaseSettle + 1)}}}},
		{name: "a list that could not be read lacks nothing", book: two(pod("10.0.0.10")), in: ReconcileInput{Metadata: func() MetadataView {
			v := shownAs(e0, e1)
			v.Interfaces[0].IPv4s, v.Interfaces[0].Unread = nil, PartIPv4s
			v.Interfaces[1].Prefixes, v.Interfaces[1].Unread = nil, PartPrefixes
			return v
		}()}},
		{name: "metadata not read", book: two(), in: ReconcileInput{Metadata: MetadataView{State: Failed}}, notes: []NoteKind{MetadataUnknown}},
		{name: "metadata lacks an ENI", book: two(), in: ReconcileInput{Metadata: shownAs(e0)},
			want: ReconcileResult{NeedEC2: true}, notes: []NoteKind{MetadataDiffers}},
		{name: "metadata shows a new ENI", book: two(), in: ReconcileInput{Metadata: shownAs(e0, e1, described(2))},
			want: ReconcileResult{NeedEC2: true}, notes: []NoteKind{MetadataDiffers}},
		{name: "it is one that is being attached", book: two(), in: ReconcileInput{Metadata: shownAs(e0, e1, described(2)), Busy: Busy{Slots: []Slot{{0, 2}}}}},
		{name: "it is known and another's", book: two(), in: ReconcileInput{Metadata: shownAs(e0, e1, described(2)), Others: []Other{{ID: "eni-2", Why: NotManaged}}}},
		{name: "it was being attached by another", book: two(), in: ReconcileInput{Metadata: shownAs(e0, e1, described(2)), Others: []Other{{ID: "eni-2", Why: "attaching, and not by this process"}}},
			want: ReconcileResult{NeedEC2: true}, notes: []NoteKind{MetadataDiffers}},
		{name: "that of another has gone", book: two(), in: ReconcileInput{Metadata: shownAs(e0, e1), Others: []Other{{ID: "eni-2", Why: NotManaged}}},
			want: ReconcileResult{NeedEC2: true}, notes: []NoteKind{MetadataDiffers}},
		{name: "EC2 is asked from time to time", book: two(), in: ReconcileInput{Metadata: shownAs(e0, e1), LastEC2: morning.Add(-time.Hour),
			Policy: ReconcilePolicy{EC2Every: time.Hour}}, want: ReconcileResult{NeedEC2: true}},

		{name: "EC2 lacks an address: quarantine first", book: two(), in: ReconcileInput{EC2: listed(part, e1), Metadata: shownAs(part, e1), Kernel: routed()},
			want: ReconcileResult{Settled: true, Events: []ipam.Event{lost10}}, notes: []NoteKind{AddressesQuarantined}},
		{name: "not for certain yet", book: two(lost10), bookAt: ConfirmAfter - 1, in: ReconcileInput{EC2: listed(part, e1), Kernel: routed()},
			want: ReconcileResult{Settled: true}},
		{name: "what is quarantined is asked about", book: two(lost10), bookAt: 1, in: ReconcileInput{Metadata: shownAs(part, e1)},
			want: ReconcileResult{NeedEC2: true}},
		{name: "for certain", book: two(lost10), bookAt: ConfirmAfter, in: ReconcileInput{EC2: listed(part, e1), Metadata: shownAs(part, e1), Kernel: routed()},
			want:  ReconcileResult{Settled: true, Events: []ipam.Event{ipam.RemoveCIDRs{ID: "eni-0", CIDRs: prefixes("10.0.0.10")}}},
			notes: []NoteKind{AddressesRemoved}},
		{name: "the metadata still shows it", book: two(lost10), bookAt: DisputeAfter - 1, in: ReconcileInput{EC2: listed(part, e1), Metadata: shownAs(e0, e1), Kernel: routed()},
			want: ReconcileResult{Settled: true}},
		{name: "the metadata has had its time", book: two(lost10), bookAt: DisputeAfter, in: ReconcileInput{EC2: listed(part, e1), Metadata: shownAs(e0, e1), Kernel: routed()},
			want:  ReconcileResult{Settled: true, Events: []ipam.Event{ipam.RemoveCIDRs{ID: "eni-0", CIDRs: prefixes("10.0.0.10")}}},
			notes: []NoteKind{AddressesRemoved}},
		{name: "the kernel is not known", book: two(lost10), bookAt: time.Hour, in: ReconcileInput{EC2: listed(part, e1), Kernel: KernelView{State: Failed}},
			want: ReconcileResult{Settled: true}, notes: []NoteKind{KernelUnknown}},
		{name: "a pod has it", book: two(pod("10.0.0.10"), lost10), bookAt: time.Hour, in: ReconcileInput{EC2: listed(part, e1), Kernel: routed("10.0.0.10")},
			want: ReconcileResult{Settled: true, CutOff: 1}, notes: []NoteKind{PodsCutOff}},
		{name: "EC2 shows it again", book: two(pod("10.0.0.10"), lost10), bookAt: 1, in: ReconcileInput{EC2: listed(e0, e1), Kernel: routed("10.0.0.10")},
			want:  ReconcileResult{Settled: true, Events: []ipam.Event{ipam.UnquarantineCIDRs{ID: "eni-0", CIDRs: prefixes("10.0.0.10")}}},
			notes: []NoteKind{AddressesBack}},
		{name: "EC2 did not answer", book: two(lost10), bookAt: time.Hour, in: ReconcileInput{EC2: EC2View{State: Failed}, Metadata: shownAs(part, e1), Kernel: routed()},
			want: ReconcileResult{NeedEC2: true}, notes: []NoteKind{EC2Unknown}},
		{name: "an empty list is no list", book: two(lost10), bookAt: time.Hour, in: ReconcileInput{EC2: listed(), Metadata: shownAs(part, e1), Kernel: routed()},
			want: ReconcileResult{NeedEC2: true}, notes: []NoteKind{EC2Unknown}},
		{name: "a release is in flight", book: two(ipam.HoldCIDRs{ID: "eni-0", CIDRs: prefixes("10.0.0.10")}), in: ReconcileInput{EC2: listed(part, e1), Metadata: shownAs(part, e1), Kernel: routed()},
			want: ReconcileResult{Settled: true}},

		{name: "EC2 shows more", book: two(), in: ReconcileInput{EC2: listed(described(0, "10.0.0.10", "10.0.0.11", "10.0.0.12", "10.0.0.32/28"), e1), Kernel: routed()},
			want:  ReconcileResult{Settled: true, Events: []ipam.Event{ipam.AddCIDRs{ID: "eni-0", CIDRs: prefixes("10.0.0.12", "10.0.0.32/28")}}},
			notes: []NoteKind{AddressesAdded}},
		{name: "it was given back a moment ago", book: two(), in: ReconcileInput{EC2: listed(described(0, "10.0.0.10", "10.0.0.11", "10.0.0.12"), e1),
			Released: []Release{{prefixes("10.0.0.12")[0], morning.Add(-ReleaseSettle + 1)}}},
			want: ReconcileResult{Settled: true}, notes: []NoteKind{AddressesJustReleased}},
		{name: "it was given back, and somebody assigned it again", book: two(), in: ReconcileInput{EC2: listed(described(0, "10.0.0.10", "10.0.0.11", "10.0.0.12"), e1),
			Released: []Release{{prefixes("10.0.0.12")[0], morning.Add(-ReleaseSettle)}}},
			want:  ReconcileResult{Settled: true, Forget: prefixes("10.0.0.12"), Events: []ipam.Event{ipam.AddCIDRs{ID: "eni-0", CIDRs: prefixes("10.0.0.12")}}},
			notes: []NoteKind{AddressesAdded}},
		{name: "it is being assigned", book: two(), in: ReconcileInput{EC2: listed(described(0, "10.0.0.10", "10.0.0.11", "10.0.0.12"), e1), Busy: Busy{CIDRs: prefixes("10.0.0.12")}},
			want: ReconcileResult{Settled: true}},
		{name: "its ENI is at work", book: two(), in: ReconcileInput{EC2: listed(described(0, "10.0.0.12"), e1), Busy: Busy{ENIs: []ipam.ENIID{"eni-0"}}},
			want: ReconcileResult{Settled: true}},
		{name: "an address moved to another ENI", book: two(lost10), bookAt: time.Hour, in: ReconcileInput{EC2: listed(part, described(1, "10.0.0.10", "10.0.1.16/28")), Kernel: routed()},
			want: ReconcileResult{Settled: true, Events: []ipam.Event{
				ipam.RemoveCIDRs{ID: "eni-0", CIDRs: prefixes("10.0.0.10")}, ipam.AddCIDRs{ID: "eni-1", CIDRs: prefixes("10.0.0.10")}}},
			notes: []NoteKind{AddressesRemoved, AddressesAdded}},
		{name: "ranges that no pod can use", book: two(), in: ReconcileInput{EC2: listed(described(0, "10.0.0.10", "10.0.0.11", "10.0.0.0/28", "10.0.0.64/27", "10.0.1.20"), e1)},
			want: ReconcileResult{Settled: true}, notes: []NoteKind{AddressConflict, AddressConflict, AddressConflict}},
		{name: "an allocation without a place is asked about", book: two(pod("10.0.9.9")), in: ReconcileInput{Metadata: shownAs(e0, e1)},
			want: ReconcileResult{NeedEC2: true}, notes: []NoteKind{MetadataDiffers}},

		{name: "an ENI vanished", book: two(pod("10.0.1.17")), in: ReconcileInput{EC2: listed(e0), Metadata: shownAs(e0), Kernel: routed("10.0.1.17")},
			want: ReconcileResult{Settled: true, CutOff: 1, Events: []ipam.Event{lostE1}}, notes: []NoteKind{ENIQuarantined, PodsCutOff}},
		{name: "and stays with its pods", book: two(pod("10.0.1.17"), lostE1), bookAt: time.Hour, in: ReconcileInput{EC2: listed(e0), Metadata: shownAs(e0), Kernel: routed()},
			want: ReconcileResult{Settled: true, CutOff: 1}, notes: []NoteKind{PodsCutOff}},
		{name: "and goes without", book: two(lostE1), bookAt: time.Hour, in: ReconcileInput{EC2: listed(e0), Metadata: shownAs(e0), Kernel: routed("10.0.0.10")},
			want: ReconcileResult{Settled: true, Gone: []ipam.ENI{entryOf(1)}, Events: []ipam.Event{
				ipam.DetachENI{ID: "eni-1"}, ipam.Restore{Sandbox: Recovered("eni10.0.0.10"), Address: netip.MustParseAddr("10.0.0.10"), AssignedAt: morning}}},
			notes: []NoteKind{ENIRemoved, PodRecovered}},
		{name: "it is attached again", book: two(lostE1), bookAt: 1, in: ReconcileInput{EC2: listed(e0, e1)},
			want: ReconcileResult{Settled: true, Events: []ipam.Event{ipam.UnquarantineENI{ID: "eni-1"}}}, notes: []NoteKind{ENIBack}},
		{name: "an ENI whose attachment ends", book: two(), in: ReconcileInput{EC2: listed(e0, with(e1, func(e *ENI) { e.AttachmentStatus = "detaching" }))},
			want: ReconcileResult{Settled: true, Events: []ipam.Event{lostE1}}, notes: []NoteKind{ENIQuarantined}},
		{name: "an ENI of another instance", book: two(), in: ReconcileInput{EC2: listed(e0, with(e1, func(e *ENI) { e.InstanceID = "i-other" }))},
			want: ReconcileResult{Settled: true, Events: []ipam.Event{lostE1}}, notes: []NoteKind{ENIQuarantined}},
		{name: "an ENI attached a moment ago", book: []ipam.Event{attach(0), ipam.AttachENI{ENI: ipam.ENI{ID: "eni-9", Device: 9, AttachedAt: morning.Add(-time.Second)}}},
			in: ReconcileInput{EC2: listed(described(0)), Metadata: shownAs(described(0)), Kernel: routed()}, want: ReconcileResult{Settled: true, NeedEC2: true}},
		{name: "a new ENI", book: two(), in: ReconcileInput{EC2: listed(e0, e1, described(2, "10.0.2.10")), Subnets: []Subnet{{ID: "subnet-a", CIDR: netip.MustParsePrefix("10.0.0.0/16")}}},
			want: ReconcileResult{Settled: true, SetUp: []Attached{{AttachmentID: "eni-attach-2", CIDRs: prefixes("10.0.2.10"), ENI: ipam.ENI{ID: "eni-2", Device: 2,
				SubnetID: "subnet-a", Subnet: netip.MustParsePrefix("10.0.0.0/16"), PrimaryIP: netip.MustParseAddr("10.0.2.4"), RouteTable: 3, AttachedAt: morning}}}},
			notes: []NoteKind{ENIFound}},
		{name: "new ENIs that are not ours", book: two(), in: ReconcileInput{EC2: listed(e0, e1, tagged(described(2), TagNoManage, "true"),
			with(described(3), func(e *ENI) { e.AttachmentStatus = "attaching" }), with(described(4), func(e *ENI) { e.InterfaceType = "efa-only" })), Metadata: shownAs(e0, e1, described(7))},
			want: ReconcileResult{Settled: true, Others: []Other{{"eni-2", 0, 2, "not the CNI's to manage"}, {"eni-3", 0, 3, "attaching, and not by this process"},
				{"eni-4", 0, 4, "not the CNI's to manage"}, {"eni-7", 0, 7, "in the instance metadata, but EC2 does not list it as attached"}}}},
		{name: "network cards", book: two(), in: ReconcileInput{Policy: ReconcilePolicy{MultiNIC: true}, EC2: listed(e0, e1,
			with(described(2), func(e *ENI) { e.Card, e.InterfaceType = 1, "efa-only" }), with(described(3), func(e *ENI) { e.Card, e.InterfaceType = 2, "efa-only" }),
			tagged(with(described(5), func(e *ENI) { e.Card = 1 }), TagNoManage, "true"), with(described(4), func(e *ENI) { e.Card = 2 })), Busy: Busy{ENIs: []ipam.ENIID{"eni-4"}}},
			want: ReconcileResult{Settled: true, EFAOnlyCards: []int{1}, Others: []Other{{"eni-2", 1, 2, "not the CNI's to manage"}, {"eni-5", 1, 5, "not the CNI's to manage"}, {"eni-3", 2, 3, "not the CNI's to manage"}}}},
		{name: "a card that is not used", book: two(), in: ReconcileInput{EC2: listed(e0, e1, with(described(2), func(e *ENI) { e.Card = 1 })), Metadata: shownAs(e0, e1, with(described(3), func(e *ENI) { e.Card = 1 }))},
			want: ReconcileResult{Settled: true}},
		{name: "tagged no_manage with pods", book: two(pod("10.0.1.17")), in: ReconcileInput{EC2: listed(e0, tagged(e1, TagNoManage, "true")), Kernel: routed()},
			want: ReconcileResult{Settled: true, Events: []ipam.Event{lostE1}}, notes: []NoteKind{ENIQuarantined}},
		{name: "tagged no_manage without", book: two(), in: ReconcileInput{EC2: listed(e0, tagged(e1, TagNoManage, "true")), Kernel: routed()},
			want:  ReconcileResult{Settled: true, Events: []ipam.Event{ipam.DetachENI{ID: "eni-1"}}, Others: []Other{{"eni-1", 0, 1, "not the CNI's to manage"}}},
			notes: []NoteKind{ENIRemoved}},
		{name: "moved to another device", book: two(), in: ReconcileInput{EC2: listed(e0, with(e1, func(e *ENI) { e.Device = 3 })), Kernel: routed()},
			want: ReconcileResult{Settled: true, Gone: []ipam.ENI{entryOf(1)}, Events: []ipam.Event{ipam.DetachENI{ID: "eni-1"}},
				SetUp: []Attached{{AttachmentID: "eni-attach-1", CIDRs: prefixes("10.0.1.16/28"), ENI: ipam.ENI{ID: "eni-1", Device: 3, SubnetID: "subnet-a",
					PrimaryIP: netip.MustParseAddr("10.0.1.4"), RouteTable: 4, AttachedAt: morning}}}},
			notes: []NoteKind{ENIRemoved, ENIFound}},
		{name: "the subnet is excluded", book: two(), in: ReconcileInput{EC2: listed(e0, e1), Subnets: []Subnet{{ID: "subnet-a", Tags: map[string]string{TagSubnetRole: "0"}}}},
			want:  ReconcileResult{Settled: true, Events: []ipam.Event{ipam.SetExcluded{ID: "eni-0", Excluded: true}, ipam.SetExcluded{ID: "eni-1", Excluded: true}}},
			notes: []NoteKind{ENIExcluded, ENIExcluded}},
		{name: "and no more", book: []ipam.Event{attach(0), ipam.SetExcluded{ID: "eni-0", Excluded: true}}, in: ReconcileInput{EC2: listed(described(0)), Subnets: []Subnet{{ID: "subnet-a"}}},
			want: ReconcileResult{Settled: true, Events: []ipam.Event{ipam.SetExcluded{ID: "eni-0"}}}, notes: []NoteKind{ENIIncluded}},
		{name: "a subnet that was not listed", book: []ipam.Event{attach(0), ipam.SetExcluded{ID: "eni-0", Excluded: true}}, in: ReconcileInput{EC2: listed(described(0)), Subnets: []Subnet{{ID: "subnet-b"}}},
			want: ReconcileResult{Settled: true}},

		{name: "a pod without allocation", book: two(), in: ReconcileInput{Kernel: KernelView{State: Known, Routes: []PodRoute{
			{Address: netip.MustParseAddr("10.0.1.17"), HostLink: "enia"}, {Address: netip.MustParseAddr("10.0.1.18"), HostLink: "enia"}, {Address: netip.MustParseAddr("10.0.1.19"), HostLink: ""}, {Address: netip.MustParseAddr("10.9.9.9"), HostLink: "enib"}}}},
			want:  ReconcileResult{Events: []ipam.Event{ipam.Restore{Sandbox: Recovered("enia"), Address: netip.MustParseAddr("10.0.1.17"), AssignedAt: morning}}},
			notes: []NoteKind{PodRecovered}},
		{name: "a pod at an address that the book gets", book: two(), in: ReconcileInput{EC2: listed(e0, with(e1, func(e *ENI) {
			e.SecondaryIPs = []netip.Addr{netip.MustParseAddr("10.0.1.99")}
		})), Kernel: routed("10.0.1.99")},
			want: ReconcileResult{Settled: true, Events: []ipam.Event{ipam.AddCIDRs{ID: "eni-1", CIDRs: prefixes("10.0.1.99")},
				ipam.Restore{Sandbox: Recovered("eni10.0.1.99"), Address: netip.MustParseAddr("10.0.1.99"), AssignedAt: morning}}},
			notes: []NoteKind{AddressesAdded, PodRecovered}},
		{name: "a pod on an ENI to be set up", book: two(), in: ReconcileInput{EC2: listed(e0, e1, described(2, "10.0.2.10")), Kernel: routed("10.0.2.10")},
			want: ReconcileResult{Settled: true, Events: []ipam.Event{ipam.Restore{Sandbox: Recovered("eni10.0.2.10"), Address: netip.MustParseAddr("10.0.2.10"), AssignedAt: morning}},
				SetUp: []Attached{{AttachmentID: "eni-attach-2", CIDRs: prefixes("10.0.2.10"), ENI: ipam.ENI{ID: "eni-2", Device: 2,
					SubnetID: "subnet-a", PrimaryIP: netip.MustParseAddr("10.0.2.4"), RouteTable: 3, AttachedAt: morning}}}},
			notes: []NoteKind{PodRecovered, ENIFound}},
		{name: "its DEL was answered a moment ago", book: two(pod("10.0.1.17"), ipam.Unassign{Sandbox: pod("10.0.1.17").Sandbox}), bookAt: OrphanAge - 1,
			in: ReconcileInput{Kernel: routed("10.0.1.17")}},
		{name: "IPv6", book: []ipam.Event{ipam.AttachENI{ENI: entryOf(0), CIDRs: prefixes("10.0.0.10", "2001:db8::/80", "2001:db8:0:0:1::/80")}}, in: ReconcileInput{
			Policy: ReconcilePolicy{IPv6: true}, Kernel: routed(),
			EC2: listed(with(described(0, "10.0.0.99"), func(e *ENI) { e.IPv6Prefixes = prefixes("2001:db8::/80", "2001:db8:0:0:2::/80") }))},
			want: ReconcileResult{Settled: true, Events: []ipam.Event{ipam.QuarantineCIDRs{ID: "eni-0", CIDRs: prefixes("2001:db8:0:0:1::/80")},
				ipam.AddCIDRs{ID: "eni-0", CIDRs: prefixes("2001:db8:0:0:2::/80")}}},
			notes: []NoteKind{AddressesQuarantined, AddressesAdded}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := bookOf(t, morning.Add(-row.bookAt), row.book...)
			in := row.in
			in.Now, in.Book = morning, b.Snapshot()
			in.Policy.InstanceID, in.Policy.PrimaryENI, in.Policy.ManageUntagged = self, "eni-0", true
			got := Reconcile(in)
			if diff := cmp.Diff(row.notes, noteKinds(got.Notes), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("notes %+v (-want +got)\n%s", got.Notes, diff)
			}
			got.Notes = nil
			if diff := cmp.Diff(row.want, got, asValues); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			for _, ev := range got.Events {
				if _, err := b.Apply(morning, ev); err != nil {
					t.Errorf("%T%+v: %v", ev, ev, err)
				}
			}
			if err := b.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// At start the book is empty: every attached and managed ENI is to be set up.
func TestReconcile_Start(t *testing.T) {
	t.Parallel()
	e0, e1 := described(0, "10.0.0.10"), tagged(described(1), TagNoManage, "true")
	e0.Device = 5 // EC2's index of the primary ENI does not matter
	got := Reconcile(ReconcileInput{Now: morning, Policy: policy(), EC2: listed(e0, e1)})
	if len(got.SetUp) != 1 || !got.SetUp[0].ENI.Primary || got.SetUp[0].ENI.RouteTable != 254 || len(got.Others) != 1 || len(got.Events) != 0 {
		t.Errorf("%+v", got)
	}
}
