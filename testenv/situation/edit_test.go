package situation

import (
	"fmt"
	"strings"
	"testing"

	"cnictl/doctor/evidence"
	"cnictl/doctor/evidence/file"
)

// TestLoad_Edits: a file's content for a source is merged into the expected content.
func TestLoad_Edits(t *testing.T) {
	t.Parallel()
	const two = "world: {enis: [{id: eni-a, ips: 2, addresses: [10.0.0.20, 10.0.0.21]}, {id: eni-b, prefixes: 1, cidrs: [10.0.16.0/28]}]}\n"
	ids := func(r *evidence.Reading) (out []string) {
		for _, e := range r.ENIs.Content {
			out = append(out, words(e.ID, len(e.IPs), len(e.Prefixes)))
		}
		return out
	}
	for name, row := range map[string]struct {
		text string
		show func(r *evidence.Reading) any
		want string
	}{
		"nothing":           {two, func(r *evidence.Reading) any { return ids(r) }, "[eni-a 2 0 eni-b 0 1]"},
		"an interface less": {two + "sources: {intro.enis: {without: [{eni: eni-b}]}}", func(r *evidence.Reading) any { return ids(r) }, "[eni-a 2 0]"},
		"a prefix less":     {two + "sources: {intro.enis: {without: [{cidr: 10.0.16.0/28}]}}", func(r *evidence.Reading) any { return ids(r) }, "[eni-a 2 0 eni-b 0 0]"},
		"an address less":   {two + "sources: {intro.enis: {without: [{address: 10.0.0.21}]}}", func(r *evidence.Reading) any { return ids(r) }, "[eni-a 1 0 eni-b 0 1]"},
		"addresses more":    {two + "sources: {intro.enis: {with: [{id: eni-a, excluded: true, ips: [10.0.0.30]}, {id: eni-c, ips: [10.0.0.31]}]}}", func(r *evidence.Reading) any { return words(ids(r), r.ENIs.Content[0].Excluded) }, "[eni-a 3 0 eni-b 0 1 eni-c 1 0] true"},
		"metadata differ":   {two + "sources: {imds: {enis: {without: [{eni: eni-b}]}}}", func(r *evidence.Reading) any { return words(len(r.IMDS.Content.ENIs), r.IMDS.Content.Zone) }, "1 eu-west-1a"},
		"EC2 has another": {two + "sources: {ec2.eni: {with: [{status: available, count: 3}]}}", func(r *evidence.Reading) any {
			e := r.Interfaces.Content[2]
			return words(e.Status, e.Subnet, e.Count, e.DeleteOnTermination, e.Holds())
		}, "available subnet-a 3 true 1"},
		"what a daemon made says when": {"sources: {ec2.eni: {with: [{id: eni-x, description: aws-K8S-i-gone, createdAt: 2026-11-12T14:02:11Z}]}}", func(r *evidence.Reading) any {
			return r.Interfaces.Content[1].Tags["node.k8s.amazonaws.com/createdAt"]
		}, "2026-11-12T14:02:11Z"},
		"settings of the manifest taken away": {"world: {env: {ENABLE_IPv4: null, WARM_ENI_TARGET: 2}}", func(r *evidence.Reading) any {
			env := r.DaemonSet.Content.Env["aws-node"]
			_, set := env["ENABLE_IPv4"]
			return words(set, env["WARM_ENI_TARGET"])
		}, "false 2"},
		"a list as a whole": {two + "sources: {intro.enis: []}", func(r *evidence.Reading) any { return len(r.ENIs.Content) }, "0"},
		"missing":           {"sources: {metrics: {missing: timeout}}", func(r *evidence.Reading) any { return r.Metrics.Missing }, "timeout"},
		"a group":           {"sources: {kern: {missing: forbidden}, kern.sysctl: expected}", func(r *evidence.Reading) any { return words(r.Rules.Missing, r.Sysctls.OK()) }, "forbidden true"},
		"a source beyond the mode": {"mode: cluster\nsources: {kern.sysctl: {a.b: 1}}", func(r *evidence.Reading) any {
			return words(r.Sysctls.Content["a.b"], len(r.Sysctls.Content) > 1, r.Links.Missing)
		}, "1 true mode"},
		"a name taken away": {"sources: {kern.sysctl: {net.ipv4.ip_forward: null}}", func(r *evidence.Reading) any { _, ok := r.Sysctls.Content["net.ipv4.ip_forward"]; return ok }, "false"},
		"a setting": {"world: {env: {WARM_IP_TARGET: 5}}", func(r *evidence.Reading) any {
			return words(r.Env.Content.IPAMD.WarmIPTarget, r.DaemonSet.Content.Env["aws-node"]["WARM_IP_TARGET"])
		}, "5 5"},
		"no daemon set": {"sources: {k8s.ds: null}", func(r *evidence.Reading) any { return words(r.DaemonSet.OK(), r.DaemonSet.Content == nil) }, "true true"},
		"a raw line":    {"sources: {log.ipamd: {lines: ['{\"msg\":\"x\"}']}}", func(r *evidence.Reading) any { l := r.LogIPAMD.Content.Lines; return words(len(l), l[2].Text) }, `3 {"msg":"x"}`},
		"log of a container": {"sources: {log.awsnode: {aws-node: {lines: [{at: -5s, msg: x}]}}}", func(r *evidence.Reading) any {
			return words(len(r.LogAWSNode.Content), len(r.LogAWSNode.Content["aws-node"].Lines))
		}, "3 5"},
		"pods by count": {"sources: {k8s.pod: {with: [{pod: shop/web, count: 2, phase: Pending, node: null}]}}", func(r *evidence.Reading) any {
			p := r.Pods.Content[len(r.Pods.Content)-1]
			return words(p.Pod, p.Node == nil, *p.Ready, p.Containers[0].Name)
		}, "shop/web-2 true false app"},
		"a rule of a pod less": {"world: {enis: [{id: eni-a, ips: 9, assigned: 1}]}\nsources: {kern.rule: {without: [{priority: 512}]}}", func(r *evidence.Reading) any { return len(r.Rules.Content) }, "4"},
		"a veth less":          {"world: {enis: [{id: eni-a, ips: 9, assigned: 2}]}\nsources: {kern.link: {without: [{pod: default/pod-1}], with: [{pod: default/pod-2, mtu: 1500}]}}", func(r *evidence.Reading) any { l := r.Links.Content; return words(len(l), l[2].Pod, *l[2].MTU) }, "3 default/pod-2 1500"},
		"base none": {"base: none\nsources: {metrics: {samples: {a: 1}}}", func(r *evidence.Reading) any {
			return words(r.Metrics.Content.Samples, r.ENIs.Missing, r.InstanceType.OK())
		}, "map[a:1] not-asked false"},
		"YAML 1.2 is JSON": {"sources: {\"kern.ct\": {\"count\": 5}}", func(r *evidence.Reading) any { return words(*r.Conntrack.Content.Count, *r.Conntrack.Content.Max) }, "5 262144"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			head := healthyNode
			if len(row.text) > 10 && row.text[:10] == "base: none" {
				head = "schemaVersion: 1\nat: 2026-11-21T14:02:11Z\n"
			}
			ev, err := Load([]byte(head + row.text))
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(row.show(ev.Nodes[0].First)); got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
}

func words(values ...any) string { return strings.TrimSuffix(fmt.Sprintln(values...), "\n") }

// FuzzLoad: any file is refused or read, and what was read can be written as an evidence file and read again.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(oneNode))
	f.Add([]byte(healthyNode + "sources: {kern.rule: {without: [{priority: 1024}]}, k8s.ds: null, log.ipamd: {lines: [a]}}"))
	f.Add([]byte(`{"schemaVersion":1,"at":"2026-11-21T14:02:11Z","nodes":[{"count":2},{"world":{"node":"b"}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		ev, err := Load(data)
		if (err == nil) != (ev != nil) {
			t.Fatalf("%v, %v", ev, err)
		}
		if err != nil || len(data) > 1<<16 {
			return
		}
		saved, err := file.Save(ev)
		if err != nil {
			return
		}
		if _, err := file.Load(saved); err != nil {
			t.Fatalf("%v in\n%s", err, saved)
		}
	})
}
