package resync

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cnictl/daemon/api/checkpoint"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/ipam"
)

func entry(ip, pod, sandbox string) checkpoint.Entry {
	return checkpoint.Entry{
		NetworkName: "aws-cni", ContainerID: sandbox, IfName: "eth0", IPv4: netip.MustParseAddr(ip),
		PodNamespace: "shop", PodName: pod, Interfaces: 1, AllocatedAt: time.Unix(1_790_000_000, 0),
	}
}

func event(e checkpoint.Entry) ipam.Restore {
	return ipam.Restore{
		Sandbox: ipam.Sandbox{Network: e.NetworkName, ContainerID: e.ContainerID, IfName: e.IfName},
		Pod:     ipam.Pod{Namespace: e.PodNamespace, Name: e.PodName, Interfaces: e.Interfaces},
		Address: e.IPv4, AssignedAt: e.AllocatedAt,
	}
}

func link(pod string) string { return netnames.HostVeth("eni", "shop", pod, 0) }

func TestRestore(t *testing.T) {
	t.Parallel()
	cart, web := entry("10.0.0.11", "cart", "aaa"), entry("10.0.0.12", "web", "bbb")
	anonymous := cart
	anonymous.PodNamespace, anonymous.PodName = "", ""
	again := entry("10.0.0.11", "web", "ccc")
	twice := entry("10.0.0.13", "cart", "aaa")
	route := func(ip, pod string) PodRoute { return PodRoute{Address: netip.MustParseAddr(ip), HostLink: link(pod)} }

	rows := []struct {
		name string
		in   RestoreInput
		want RestoreResult
	}{
		{"nothing", RestoreInput{}, RestoreResult{}},
		{"both pods live",
			RestoreInput{Entries: []checkpoint.Entry{cart, web}, Links: []string{"lo", "eth0", link("cart"), link("web")}},
			RestoreResult{Events: []ipam.Restore{event(cart), event(web)}}},
		{"a pod went while the daemon was down",
			RestoreInput{Entries: []checkpoint.Entry{cart, web}, Links: []string{link("web")}, Routes: []PodRoute{route("10.0.0.12", "web")}},
			RestoreResult{Events: []ipam.Restore{event(web)}, Stale: []checkpoint.Entry{cart}}},
		{"its left-over route revives nothing",
			RestoreInput{Entries: []checkpoint.Entry{cart}, Links: []string{link("web")}, Routes: []PodRoute{route("10.0.0.11", "web")}},
			RestoreResult{Stale: []checkpoint.Entry{cart}}},
		{"an ADD was answered a moment ago, its link is still to come",
			RestoreInput{Entries: []checkpoint.Entry{cart, web}, Links: []string{link("web")}, Now: cart.AllocatedAt.Add(LinkDelay - 1)},
			RestoreResult{Events: []ipam.Restore{event(cart), event(web)}}},
		{"a minute later the link should be there",
			RestoreInput{Entries: []checkpoint.Entry{cart, web}, Links: []string{link("web")}, Now: cart.AllocatedAt.Add(LinkDelay)},
			RestoreResult{Events: []ipam.Restore{event(web)}, Stale: []checkpoint.Entry{cart}}},
		{"an entry from the future is not young",
			RestoreInput{Entries: []checkpoint.Entry{cart}, Links: []string{link("web")}, Now: cart.AllocatedAt.Add(-LinkDelay)},
			RestoreResult{Stale: []checkpoint.Entry{cart}}},
		{"entries of old releases name no pod and stay",
			RestoreInput{Entries: []checkpoint.Entry{anonymous}},
			RestoreResult{Events: []ipam.Restore{event(anonymous)}}},
		{"the file is lost, the pods are not",
			RestoreInput{Links: []string{link("cart"), link("web")}, Routes: []PodRoute{route("10.0.0.12", "web"), route("10.0.0.11", "cart")}},
			RestoreResult{Recovered: 2, Events: []ipam.Restore{
				{Sandbox: Recovered(link("cart")), Address: cart.IPv4}, {Sandbox: Recovered(link("web")), Address: web.IPv4}}}},
		{"one sandbox with two addresses, a pod has the second",
			RestoreInput{Entries: []checkpoint.Entry{cart, twice}, Links: []string{link("cart")}, Routes: []PodRoute{route("10.0.0.13", "cart")}},
			RestoreResult{Recovered: 1, Events: []ipam.Restore{event(cart), {Sandbox: Recovered(link("cart")), Address: twice.IPv4}}}},
		{"an entry without sandbox",
			RestoreInput{Entries: []checkpoint.Entry{{IPv4: cart.IPv4}, {NetworkName: "aws-cni"}}}, RestoreResult{}},
		{"one address claimed twice",
			RestoreInput{Entries: []checkpoint.Entry{cart, again}, Links: []string{link("cart"), link("web")}},
			RestoreResult{Events: []ipam.Restore{event(cart)}}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			row.in.HashOf = func(ns, name string) string { return netnames.Hash(ns, name, 0) }
			got := Restore(row.in)
			if diff := cmp.Diff(row.want, got, cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestAdopt(t *testing.T) {
	t.Parallel()
	held := attach(0, "10.0.0.11", "10.0.0.32/28")
	rows := []struct {
		name string
		view []Attached
		want []ipam.Event
	}{
		{"what is there already", []Attached{{ENI: entryOf(0), CIDRs: prefixes("10.0.0.32/28", "10.0.0.11")}}, nil},
		{"more of a known ENI, and another", []Attached{{ENI: entryOf(0), CIDRs: prefixes("10.0.0.11", "10.0.0.12")}, {ENI: entryOf(1), CIDRs: prefixes("10.0.1.32/28")}},
			[]ipam.Event{ipam.AddCIDRs{ID: "eni-0", CIDRs: prefixes("10.0.0.12")}, attach(1, "10.0.1.32/28")}},
		{"what is on another ENI by now", []Attached{{ENI: entryOf(1), CIDRs: prefixes("10.0.0.11", "10.0.0.33", "10.0.0.0/28", "10.0.1.9")}},
			[]ipam.Event{attach(1, "10.0.1.9")}},
		{"what overlaps itself", []Attached{{ENI: entryOf(1), CIDRs: prefixes("10.0.1.16/28", "10.0.1.17", "10.0.1.16/28")}, {ENI: entryOf(1), CIDRs: prefixes("10.0.1.9")}},
			[]ipam.Event{attach(1, "10.0.1.16/28"), ipam.AddCIDRs{ID: "eni-1", CIDRs: prefixes("10.0.1.9")}}},
		{"what no pod can use", []Attached{{ENI: entryOf(1), CIDRs: prefixes("10.0.1.4", "10.0.1.0/28", "10.0.1.64/27")}}, []ipam.Event{attach(1)}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := bookOf(t, morning, held)
			got := Adopt(b.Snapshot(), row.view)
			if diff := cmp.Diff(row.want, got, asValues); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			for _, ev := range got {
				if _, err := b.Apply(morning, ev); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestSandboxOf: only files distinguish the cards of one pod.
func TestSandboxOf(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ interfaces, card, want int }{
		{0, 0, 0}, {0, 3, 0}, // from before multiple cards
		{1, 0, 0}, {1, 3, 0}, // a pod that may use any card
		{2, 0, 0}, {2, 1, 1}, {4, 3, 3},
	} {
		e := entry("10.0.0.11", "cart", "aaa")
		e.Interfaces, e.Card = row.interfaces, row.card
		want := ipam.Sandbox{Network: "aws-cni", ContainerID: "aaa", IfName: "eth0", Interface: row.want}
		if got := SandboxOf(e); got != want {
			t.Errorf("%d interfaces, file of card %d: %+v, want %+v", row.interfaces, row.card, got, want)
		}
	}
}

// TestRestore_CardsOfOnePod: each card keeps its address, whichever file is read first, and
// so do entries in only one file.
func TestRestore_CardsOfOnePod(t *testing.T) {
	t.Parallel()
	first, second := entry("10.0.0.11", "cart", "aaa"), entry("10.1.0.11", "cart", "aaa")
	first.Interfaces, second.Interfaces, second.Card = 2, 2, 1
	onSecond := event(second)
	onSecond.Sandbox.Interface = 1
	for name, row := range map[string]struct {
		entries []checkpoint.Entry
		want    []ipam.Restore
	}{
		"both":                {[]checkpoint.Entry{first, second}, []ipam.Restore{event(first), onSecond}},
		"the other way round": {[]checkpoint.Entry{second, first}, []ipam.Restore{onSecond, event(first)}},
		"half of it":          {[]checkpoint.Entry{second}, []ipam.Restore{onSecond}},
	} {
		got := Restore(RestoreInput{Entries: row.entries, Links: []string{link("cart")}, HashOf: hashOf})
		if diff := cmp.Diff(row.want, got.Events, asValues); diff != "" || len(got.Stale) > 0 || got.Recovered > 0 {
			t.Errorf("%s: %+v\n%s", name, got, diff)
		}
	}
}
