package pod

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/kube"
	"cnictl/daemon/fleet/watch"
)

const annotation = `[{"eniId":"eni-0123456789abcdef0","ifAddress":"06:25:70:70:b1:69","privateIp":"192.168.53.199","ipv6Addr":"","vlanId":1,"subnetCidr":"192.168.32.0/19","subnetV6Cidr":"","associationID":"trunk-assoc-0123456789abcdef0"}]`

func TestVerdict(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 14, 2, 11, 0, time.UTC)
	ref := introspect.PodRef{Namespace: "shop", Name: "cart"}
	has := []introspect.PodInterface{{Address: netip.MustParseAddr("10.0.0.1"), ENIID: "eni-1", Differences: []string{"a", "b"}}}
	for name, tt := range map[string]struct {
		in       Evidence
		state    string
		sentence string
	}{
		"assigned":       {Evidence{Node: "n", Asked: true, Interfaces: has}, document.PodHasAddress, "10.0.0.1 of eni-1, on n; the kernel's state is not as expected: 2 differences"},
		"nothing known":  {Evidence{}, document.PodUnknown, "no information about it"},
		"failed alone":   {Evidence{Node: "n", Asked: true, Failures: []introspect.Failure{{Pod: ref, Cause: "pool-dry", Title: "no free address"}}}, document.PodWaiting, "it has no address: pool-dry: no free address"},
		"host network":   {Evidence{Node: "n", Kube: &watch.Pod{HostNetwork: true, IPs: []string{"10.0.0.250"}}}, document.PodHostNetwork, "address of its node, 10.0.0.250"},
		"ended":          {Evidence{Node: "n", Kube: &watch.Pod{Phase: "Succeeded"}}, document.PodEnded, "finished (Succeeded)"},
		"not bound":      {Evidence{Kube: &watch.Pod{Phase: "Pending", Reason: "Unschedulable: 0/3 nodes"}}, document.PodWaiting, "not bound to a node yet: Unschedulable"},
		"branch":         {Evidence{Node: "n", Kube: &watch.Pod{PodENI: annotation}}, document.PodBranch, "192.168.53.199 is the address of its branch ENI eni-0123456789abcdef0, VLAN 1 on the trunk of n"},
		"bad annotation": {Evidence{Node: "n", Kube: &watch.Pod{PodENI: strings.Replace(annotation, `"vlanId":1`, `"vlanId":0`, 1)}}, document.PodWaiting, "is invalid: vlanId is 0"},
		"asks":           {Evidence{Node: "n", Kube: &watch.Pod{Wants: true}}, document.PodWaiting, "has not annotated it yet"},
		"not read":       {Evidence{Node: "n", Kube: &watch.Pod{IPs: []string{"10.0.0.1"}}}, document.PodHasAddress, "the daemon could not be read"},
		"foreign":        {Evidence{Node: "n", Asked: true, Kube: &watch.Pod{IPs: []string{"10.0.0.1"}}}, document.PodUnknown, "holds no address for it"},
		"blocked":        {Evidence{Node: "n", Asked: true, Kube: &watch.Pod{Phase: "Pending"}, Blocked: []introspect.BlockedCard{{Cause: "subnet-exhausted", Message: "none free"}}}, document.PodWaiting, "it has no address: subnet-exhausted: none free"},
		"no ADD":         {Evidence{Node: "n", Asked: true, Kube: &watch.Pod{Phase: "Pending"}}, document.PodWaiting, "no ADD received for it yet"},
	} {
		tt.in.Pod, tt.in.At = ref, now
		if tt.in.Kube != nil {
			tt.in.Kube.PodRef = ref
		}
		if r := Report(tt.in); r.State != tt.state || !strings.Contains(r.Verdict, tt.sentence) {
			t.Errorf("%s: %s, %q; want %s, %q", name, r.State, r.Verdict, tt.state, tt.sentence)
		}
	}
}

// TestTimeline: what the daemon reports both as an event and as a failure appears once.
func TestTimeline(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return time.Date(2026, 11, 21, 14, 0, s, 0, time.UTC) }
	ref := introspect.PodRef{Namespace: "shop", Name: "cart"}
	other := introspect.PodRef{Namespace: "shop", Name: "other"}
	r := Report(Evidence{
		Pod:      ref,
		Daemon:   []introspect.Event{{At: at(5), Kind: introspect.EventADDFailed, Pod: &ref, Cause: "pool-dry"}, {At: at(6), Kind: introspect.EventADDFailed, Pod: &other}, {At: at(9), Kind: introspect.EventAddressAssigned, Pod: &ref}},
		Failures: []introspect.Failure{{At: at(5), Pod: ref, Cause: "pool-dry"}, {At: at(1), Pod: ref, Cause: "not-ready", Title: "starting"}, {At: at(6), Pod: other}},
		Events:   []kube.Event{{At: at(7), Reason: "FailedCreatePodSandBox", Type: "Warning", Count: 3}},
	})
	var got []string
	for _, i := range r.Timeline {
		got = append(got, i.From+" "+i.What)
	}
	if want := "daemon add-failed, daemon add-failed, kubernetes FailedCreatePodSandBox, daemon address-assigned"; strings.Join(got, ", ") != want {
		t.Errorf("%s, want %s", strings.Join(got, ", "), want)
	}
	if len(r.Failures) != 2 || r.Timeline[2].Count != 3 || !r.Timeline[2].Warning {
		t.Errorf("%+v", r)
	}
}

// FuzzParseBranch: whatever the annotation, a branch without a problem is usable.
func FuzzParseBranch(f *testing.F) {
	f.Add(annotation)
	f.Add(`[{}]`)
	f.Add(`[]`)
	f.Add(`[{"vlanId":"1"}]`)
	f.Fuzz(func(t *testing.T, text string) {
		b, problem := parseBranch(text)
		switch {
		case text == "" && (b != nil || problem != ""):
			t.Fatalf("nothing gives %+v, %q", b, problem)
		case text != "" && problem == "" && (b == nil || b.VLAN < 1 || !b.IPv4.IsValid() && !b.IPv6.IsValid()):
			t.Fatalf("%q gives %+v without a problem", text, b)
		}
	})
}
