package inventory

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/watch"
)

func ref(name string) introspect.PodRef { return introspect.PodRef{Namespace: "shop", Name: name} }

func holds(ip, name string) document.AddressItem {
	a := netip.MustParseAddr(ip)
	return document.AddressItem{
		Address: ip, CIDR: netip.PrefixFrom(a, 32), Count: 1, ENIID: "eni-1", Device: 1, SubnetID: "subnet-1",
		State: introspect.AddressAssigned, PodNamespace: "shop", PodName: name,
	}
}

func TestJoin(t *testing.T) {
	t.Parallel()
	in := PodSides{
		Listed: true, Asked: true,
		Held:     []document.AddressItem{holds("10.0.0.1", "has"), holds("10.0.0.2", "gone"), holds("10.0.0.3", "other")},
		Failures: []introspect.Failure{{Pod: ref("failed"), Cause: "subnet-exhausted", Detail: "no free addresses"}},
		Blocked:  []introspect.BlockedCard{{Cause: "pool-dry", Message: "no free address of 9"}},
		Pods: []watch.Pod{
			{PodRef: ref("has"), Phase: "Running", IPs: []string{"10.0.0.1"}},
			{PodRef: ref("other"), Phase: "Running", IPs: []string{"10.9.9.9"}},
			{PodRef: ref("failed"), Phase: "Pending"},
			{PodRef: ref("blocked"), Phase: "Pending"},
			{PodRef: ref("host"), Phase: "Running", HostNetwork: true, IPs: []string{"10.0.0.250"}},
			{PodRef: ref("done"), Phase: "Succeeded", IPs: []string{"10.0.0.9"}},
			{PodRef: ref("branch"), Phase: "Running", PodENI: "[…]", IPs: []string{"10.1.0.9"}},
			{PodRef: ref("asks"), Phase: "Pending", Wants: true},
			{PodRef: ref("foreign"), Phase: "Running", IPs: []string{"10.2.0.9"}},
		},
	}
	type row struct{ Name, State, Address, Reason string }
	rows := func(in PodSides) (out []row) {
		for _, i := range JoinPods(in) {
			out = append(out, row{i.Name, i.State, i.Address, i.Reason})
		}
		return out
	}
	want := []row{
		{"asks", document.PodWaiting, "", "it needs a branch ENI, and the VPC resource controller has not annotated it yet"},
		{"blocked", document.PodWaiting, "", "pool-dry: no free address of 9"},
		{"branch", document.PodBranch, "10.1.0.9", ""},
		{"done", document.PodEnded, "", ""},
		{"failed", document.PodWaiting, "", "subnet-exhausted: no free addresses"},
		{"foreign", document.PodUnknown, "10.2.0.9", "the daemon holds no address for it"},
		{"gone", document.PodLeftOver, "10.0.0.2", "Kubernetes has no such pod on the node: its DEL is missing or still to come"},
		{"has", document.PodHasAddress, "10.0.0.1", ""},
		{"host", document.PodHostNetwork, "10.0.0.250", ""},
		{"other", document.PodHasAddress, "10.0.0.3", "Kubernetes reports 10.9.9.9"},
	}
	if diff := cmp.Diff(want, rows(in)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	in.Listed, in.Pods = false, nil
	want = []row{{"gone", document.PodHasAddress, "10.0.0.2", ""}, {"has", document.PodHasAddress, "10.0.0.1", ""}, {"other", document.PodHasAddress, "10.0.0.3", ""}}
	if diff := cmp.Diff(want, rows(in)); diff != "" {
		t.Errorf("without Kubernetes (-want +got):\n%s", diff)
	}
	in = PodSides{Listed: true, Pods: []watch.Pod{{PodRef: ref("a"), IPs: []string{"10.0.0.1"}}, {PodRef: ref("b"), Reason: "ContainerCreating"}}}
	want = []row{{"a", document.PodHasAddress, "10.0.0.1", "the daemon could not be read"}, {"b", document.PodWaiting, "", "ContainerCreating"}}
	if diff := cmp.Diff(want, rows(in)); diff != "" {
		t.Errorf("without the daemon (-want +got):\n%s", diff)
	}
}

// TestJoin_WithoutNames: upstream v1.9 reports the addresses in use, but no pods.
func TestJoin_WithoutNames(t *testing.T) {
	t.Parallel()
	nameless := func(ip string) document.AddressItem {
		a := holds(ip, "")
		a.PodNamespace = ""
		return a
	}
	in := PodSides{
		Listed: true, Asked: true,
		Held: []document.AddressItem{nameless("10.0.0.1"), nameless("10.0.0.2"), nameless("10.0.0.9")},
		Pods: []watch.Pod{
			{PodRef: ref("has"), Phase: "Running", IPs: []string{"10.0.0.1"}},
			{PodRef: ref("not"), Phase: "Running", IPs: []string{"10.0.0.3"}},
			{PodRef: ref("done"), Phase: "Succeeded", IPs: []string{"10.0.0.9"}},
		},
	}
	type row struct{ Name, State, Address, ENI, Reason string }
	var got []row
	for _, i := range JoinPods(in) {
		got = append(got, row{i.Name, i.State, i.Address, i.ENIID, i.Reason})
	}
	want := []row{
		{"", document.PodHasAddress, "10.0.0.2", "eni-1", ""},
		{"", document.PodHasAddress, "10.0.0.9", "eni-1", ""},
		{"done", document.PodEnded, "", "", ""},
		{"has", document.PodHasAddress, "10.0.0.1", "eni-1", ""},
		{"not", document.PodUnknown, "10.0.0.3", "", "the daemon holds no address for it"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWhyNone_EmptyPool: what keeps the pool empty says more than that it was empty at the last ADD.
func TestWhyNone_EmptyPool(t *testing.T) {
	t.Parallel()
	failed := []introspect.Failure{{Pod: ref("p"), Cause: "pool-dry", Detail: "no free address"}}
	for why, blocked := range map[string][]introspect.BlockedCard{
		"ec2-throttled: EC2 throttles": {{Cause: "ec2-throttled", Message: "EC2 throttles"}},
		"pool-dry: no free address":    {{Cause: "pool-dry", Message: "none of 9"}},
	} {
		if got := WhyNone(failed, blocked, watch.Pod{PodRef: ref("p")}); got != why {
			t.Errorf("%q, want %q", got, why)
		}
	}
}
