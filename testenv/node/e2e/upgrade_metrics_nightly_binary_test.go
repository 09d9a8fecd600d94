//go:build nightly

package e2e_test

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cnictl/testenv/node"
	"cnictl/testenv/text/golden"
)

// notServed has patterns of series that are in upstream's recordings and that our daemon does
// not serve, with the reason.
var notServed = map[string]string{
	`="ModifyNetworkInterfaceAttribute"`: "upstream writes the security groups of every ENI at each start, ours of those that have others",
	`="DescribeInstances"`:               "ours knows from DescribeNetworkInterfaces which device indexes are taken",
	`with_api_server="true"`:             "the recording's node had an API server, these have none",
}

// TestDowngrade_Metrics brings our daemon into the states in which upstream was scraped, and
// compares the series: ours include all of upstream's, with the same name, type and labels.
func TestDowngrade_Metrics(t *testing.T) {
	t.Parallel()
	for mode := range modes {
		t.Run(mode, func(t *testing.T) {
			r := readRecording(t, mode)
			l, instance := r.instance(t)
			n := l.node(instance)
			env := maps.Clone(modes[mode])
			env["MAX_ENI"], env["WARM_ENI_TARGET"] = fmt.Sprint(len(r.enis)), fmt.Sprint(len(r.enis))
			env["CNI_ADD_WAIT"] = "0s"
			l.start(n, env)
			l.settled(n)
			all := ""
			check := func(moment string) {
				t.Helper()
				all = l.scrape(n)
				got, want := series(all), series(string(r.read("metrics."+moment+".txt")))
				for _, s := range slices.Sorted(maps.Keys(want)) {
					if !got[s] && !excused(s) {
						t.Errorf("%s: not served: %s", moment, s)
					}
				}
			}
			check("before")
			pods := l.mustAdd(n, "web", recordedSize, 1)
			if _, err := n.RunPlugin(pods[0], "ADD", nil); err != nil {
				t.Error(err)
			}
			check("three-pods")
			l.del(n, pods[:1], 1)
			check("one-deleted")
			l.settled(n)
			l.world.SetLatency("AssignPrivateIpAddresses", time.Minute)
			l.failAfterAddress(n)
			failed := 0
			for i := 0; failed == 0 && i < 100; i++ {
				more, errs := add(n, fmt.Sprint("full-", i), 1, 1)
				pods, failed = append(pods, more...), len(errs)
			}
			check("exhausted")
			l.values(n, all, pods[1:], failed)
			names := slices.Sorted(maps.Keys(series(planReasons.ReplaceAllString(all, "…"))))
			golden.Check(t, "series.txt", []byte(strings.Join(names, "\n")+"\n"))
		})
	}
}

// failAfterAddress makes an ADD fail after it got an address: its interface would have the name
// of the loopback device. The plugin releases the address. (The recorded failure was a
// missing namespace, which our plugin notices before it requests an address.)
func (l *lab) failAfterAddress(n *node.Node) {
	l.t.Helper()
	p, err := n.NewSandbox(node.PodSpec{Namespace: "default", Name: "no-interface"})
	if err != nil {
		l.t.Fatal(err)
	}
	p.IfName = "lo"
	if r, err := n.RunPlugin(p, "ADD", nil); err == nil {
		l.t.Errorf("ADD of an interface lo succeeded: %s", r.Stdout)
	}
	if err := n.RemoveSandbox(p); err != nil {
		l.t.Fatal(err)
	}
}

func excused(series string) bool {
	for pattern := range notServed {
		if regexp.MustCompile(pattern).MatchString(series) {
			return true
		}
	}
	return false
}

// values compares the final values with the world.
func (l *lab) values(n *node.Node, text string, pods []*node.Pod, failed int) {
	l.t.Helper()
	total, prefixes := 0, 0
	enis := l.world.ENIsOf(n.InstanceID)
	perENI, perCIDR := map[string]int{}, map[string]int{}
	for _, e := range enis {
		total += len(e.SecondaryIPs) + 16*len(e.Prefixes)
		prefixes += len(e.Prefixes)
		for _, p := range pods {
			if !e.Owns(p.IP) {
				continue
			}
			perENI[e.ID]++
			cidr := netip.PrefixFrom(p.IP, 32)
			for _, prefix := range e.Prefixes {
				if prefix.Contains(p.IP) {
					cidr = prefix
				}
			}
			perCIDR[cidr.String()]++
		}
	}
	want := map[string]int{
		"awscni_assigned_ip_addresses":     len(pods),
		"awscni_total_ip_addresses":        total,
		"awscni_total_ipv4_prefixes":       prefixes,
		"awscni_eni_allocated":             len(enis),
		"awscni_no_available_ip_addresses": failed,
		"awscni_force_removed_ips":         0,
	}
	for id, count := range perENI {
		want[`awscni_assigned_ip_per_eni{eni="`+id+`"}`] = count
	}
	for cidr, count := range perCIDR {
		want[`awscni_assigned_ip_per_cidr{cidr="`+cidr+`"}`] = count
	}
	for name, v := range want {
		if got := value(text, name); got != fmt.Sprint(v) {
			l.t.Errorf("%s is %q, want %d", name, got, v)
		}
	}
	for action, count := range l.calls().by {
		if got := value(text, `awscni_ec2api_req_count{fn="`+action+`"}`); got != fmt.Sprint(count) {
			l.t.Errorf("%q requests of %s are counted, EC2 got %d", got, action, count)
		}
	}
}
