package causes

import (
	"strings"
	"testing"
)

// pairs are the views of the same fact that are compared, with what is observed, or found, if only
// the first one has something and if only the second one has it; a word behind it is what its subject
// begins with. One kind for both is a value that differs.
var pairs = []struct{ views, first, second string }{
	{"interfaces: EC2, datastore", "obs/eni-not-in-datastore", "obs/eni-not-in-ec2"},
	{"interfaces: EC2, metadata", "obs/eni-not-in-metadata", "obs/eni-only-in-metadata"},
	{"device numbers: EC2, datastore", "obs/eni-place", "obs/eni-place"},
	{"primary addresses: EC2, links", "obs/eni-address-differs", "obs/eni-address-differs"},
	{"addresses: EC2, datastore", "obs/address-not-in-datastore", "obs/address-not-in-ec2"},
	{"addresses: EC2, metadata", "obs/address-not-in-metadata", "obs/address-only-in-metadata"},
	{"assignments: datastore, checkpoint", "obs/allocation-not-in-checkpoint", "obs/allocation-only-in-checkpoint"},
	{"assignments: pods, datastore", "obs/pod-no-allocation", "obs/allocation-no-pod"},
	{"assignments: pods, checkpoint", "obs/pod-not-in-checkpoint", "obs/allocation-only-in-checkpoint"},
	{"addresses: pods, datastore", "obs/pod-address-differs", "obs/pod-address-differs"},
	{"addresses: pods, interfaces", "obs/pod-address-on-no-eni", "obs/pod-address-of-node"},
	{"links: pods, kernel", "obs/pod-no-veth", "obs/veth-no-pod"},
	{"VLAN links: branch pods, kernel", "obs/pod-no-vlan", "obs/veth-no-pod vlan.eth."},
	{"rules: pods, kernel", "obs/pod-no-rule", "net/stale-rules"},
	{"routes: pods, kernel", "obs/pod-no-route", "obs/route-no-pod"},
	{"rules of the node: CNI, kernel", "obs/main-rule", "obs/rule-ahead"},
	{"routes of interfaces: CNI, kernel", "obs/eni-no-route", "obs/eni-route-wrong"},
	{"default routes: node, kernel", "obs/node-no-default-route", "obs/node-second-default-route"},
	{"rules: CNI's chains, kernel", "obs/snat", "obs/chains-split"},
	{"branch interfaces: pods, EC2", "obs/pod-branch-gone", "obs/branch-no-pod"},
	{"policies: pods, agent", "obs/pod-no-policy", "obs/policy-no-pod"},
	{"nodes: cluster, daemons", "obs/daemon-not-on-node", "obs/no-vpc-cni"},
	{"instance: Kubernetes, metadata", "obs/node-instance", "obs/node-instance"},
	{"addresses: interfaces, links", "obs/eni-link-address", "obs/host-has-pod-address"},
	{"settings: DaemonSet, daemon", "obs/setting-not-in-effect", "obs/setting-not-in-effect"},
	{"release: plugin, daemon", "obs/plugin-other-release", "obs/plugin-other-release"},
}

// alone are kinds of views that have no counterpart, with the reason.
var alone = map[string]string{
	"obs/eni-no-link":        "the kernel has many links that are of no interface",
	"obs/eni-link-down":      "a link that is up is as it should be",
	"obs/pod-veth-down":      "a link that is up is as it should be",
	"obs/pod-address-shared": "compares pods with each other",
	"obs/pod-of-other-cni":   "compares pods with the ranges of the VPC",
	"obs/rule-wrong":         "a rule that is there, with another table",
	"obs/pod-gateway-mac":    "two values of one link",
	"obs/route-overlaps":     "compares routes with the ranges of the pods",
	"obs/node-instance-type": "a value",
	"obs/max-pods-differs":   "a value",
	"obs/counters":           "values",
	"obs/eniconfig-differs":  "a value",
}

// TestPairs: for each pair of views there is a situation in which either side has more. Each kind of
// the views is of a pair, or has no counterpart.
func TestPairs(t *testing.T) {
	t.Parallel()
	seen, of := map[string][]string{}, map[string]bool{}
	for _, f := range fixtures(t) {
		r := Diagnose(f.ev, Options{})
		for _, o := range r.Observations {
			for _, p := range pairs {
				for _, want := range []string{p.first, p.second} {
					if kind, subject, ok := strings.Cut(want, " "); ok && o.Kind == kind && strings.HasPrefix(o.Subject, subject) {
						seen[want] = append(seen[want], f.name)
					}
				}
			}
			seen[o.Kind] = append(seen[o.Kind], f.name)
		}
		for _, found := range r.Findings {
			seen[found.Code] = append(seen[found.Code], f.name)
		}
	}
	for _, p := range pairs {
		for _, kind := range []string{p.first, p.second} {
			of[kind] = true
			if len(seen[kind]) == 0 {
				t.Errorf("%s: no situation has %s", p.views, kind)
			}
		}
	}
	for _, o := range viewObservers {
		if of[o.kind] == (alone[o.kind] != "") {
			t.Errorf("%s: of a pair: %v, alone: %q", o.kind, of[o.kind], alone[o.kind])
		}
	}
}
