package file_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cnictl/doctor/evidence"
	"cnictl/doctor/evidence/file"
	"cnictl/testenv/situation"
)

// oneNode has a full pool at first, and another interface later.
const oneNode = healthyNode + `interval: 30s
world:
  enis:
    - {id: eni-a, ips: 9, assigned: 9, assignedFor: 20s}
sources:
  log.ipamd:
    lines:
      - {at: -14s, level: error, msg: DataStore has no available IP/Prefix addresses, count: 5, every: 2s}
      - '{"msg":"a raw line"}'
  metrics:
    samples:
      awscni_no_available_ip_addresses: 5
  k8s.node: {labels: {gone: later}, annotations: {empty: ""}}
later:
  world:
    enis:
      - {id: eni-a, ips: 9, assigned: 9, assignedFor: 50s}
      - {id: eni-b, ips: 9, assigned: 3, assignedFor: 10s}
  sources:
    k8s.node: {labels: {gone: null}}
    kern.rule: {missing: timeout}
`

const healthyNode = "schemaVersion: 1\nat: 2026-11-21T14:02:11Z\nbase: healthy\n"

// TestSave_RoundTrip: saved evidence loads unchanged.
func TestSave_RoundTrip(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a healthy node": healthyNode,
		"ours":           healthyNode + "world: {daemon: ours, enis: [{id: eni-a, ips: 9, assigned: 3, cooling: [5s]}, {id: eni-b, prefixes: 2, assigned: 4}]}\n",
		"IPv6":           healthyNode + "world: {ipFamily: ipv6, enis: [{id: eni-a, prefixes: 1, assigned: 2}]}\n",
		"no daemon":      healthyNode + "world: {daemon: none}\n",
		"two readings":   oneNode,
		"branch pods": healthyNode + `world:
  env: {ENABLE_POD_ENI: "true", AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG: "true"}
  enis: [{id: eni-a}, {id: eni-t, trunk: true, device: 2}]
  pods:
    - pod: shop/db
      containers: [{name: app, limits: {vpc.amazonaws.com/pod-eni: 1}}]
      annotations: {vpc.amazonaws.com/pod-eni: '[{"eniId":"eni-0b","ifAddress":"02:00:00:00:00:07","privateIp":"10.0.0.90","vlanId":3,"subnetCidr":"10.0.0.0/20"}]'}
`,
		"several nodes": `schemaVersion: 1
at: 2026-11-21T09:30:00Z
mode: laptop
base: healthy
once: true
scope: {cluster: true}
world: {instanceType: m5.xlarge, subnets: [{id: subnet-a, cidr: 10.0.8.0/21, available: 88}]}
sources: {k8s.wh: {missing: forbidden}}
nodes:
  - {count: 3, world: {node: worker, enis: [{id: eni-a, ips: 14, assigned: 4}, {id: eni-b, ips: 14}]}}
  - {world: {node: locked, enis: [{id: eni-a, ips: 14, assigned: 5}]}, sources: {intro: {missing: forbidden}}}
`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, err := situation.Load([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			saved, err := file.Save(want)
			if err != nil {
				t.Fatal(err)
			}
			got, err := file.Load(saved)
			if err != nil {
				t.Fatalf("%v in\n%s", err, saved)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); diff != "" {
				t.Errorf("read again (-want +got):\n%s", diff)
			}
			if again, err := file.Save(got); err != nil || string(again) != string(saved) {
				diff := cmp.Diff(strings.Split(string(saved), "\n"), strings.Split(string(again), "\n"))
				t.Errorf("saved again it is another (-first +again): %v\n%s", err, diff)
			}
		})
	}
}

// TestSave_LongLogs: a file that would be too large loses the oldest log lines, in both readings.
func TestSave_LongLogs(t *testing.T) {
	t.Parallel()
	lines := func(n int) (out []evidence.Line) {
		for i := range n {
			out = append(out, evidence.Line{Level: "info", Msg: fmt.Sprint(strings.Repeat("x", 1000), " ", i)})
		}
		return out
	}
	ev, err := situation.Load([]byte(oneNode))
	if err != nil {
		t.Fatal(err)
	}
	first, second := ev.Nodes[0].First, ev.Nodes[0].Second
	all := lines(5100)
	first.LogIPAMD = evidence.Read(evidence.Log{Lines: all[:5000]})
	second.LogIPAMD = evidence.Read(evidence.Log{Lines: all})
	first.LogKubelet, second.LogKubelet = evidence.Lacking[evidence.Log](evidence.MissingTimeout), evidence.Read(evidence.Log{Lines: lines(5000)})
	first.LogAWSNode = evidence.Read(map[string]evidence.Log{"aws-node": {Lines: lines(3000), Previous: &evidence.Log{Lines: lines(3000)}}})
	second.LogAWSNode = first.LogAWSNode
	saved, err := file.Save(ev)
	if err != nil {
		t.Fatal(err)
	}
	again, err := file.Load(saved)
	if err != nil {
		t.Fatal(err)
	}
	now := again.Nodes[0].Second
	container := now.LogAWSNode.Content["aws-node"]
	for name, l := range map[string]evidence.Log{"log.ipamd": now.LogIPAMD.Content, "log.kubelet": now.LogKubelet.Content, "log.awsnode": container, "previous": *container.Previous} {
		if len(l.Lines) == 0 || !l.Truncated {
			t.Errorf("%s: %d lines, truncated %v", name, len(l.Lines), l.Truncated)
		}
	}
	got := now.LogIPAMD.Content.Lines
	if got[len(got)-1].Msg != all[5099].Msg || len(got)-len(again.Nodes[0].First.LogIPAMD.Content.Lines) != 100 {
		t.Errorf("log.ipamd: %d lines after a first reading of %d, want 100 more", len(got), len(again.Nodes[0].First.LogIPAMD.Content.Lines))
	}
	if len(first.LogIPAMD.Content.Lines) != 5000 {
		t.Error("what was saved has changed")
	}
}

// TestLoad_Dense: a file that is mostly marks would take the parser hundreds of times its size. It is
// refused before it is parsed, and never written.
func TestLoad_Dense(t *testing.T) {
	t.Parallel()
	const start = "schemaVersion: 2\nat: 2026-11-21T12:00:00Z\nsources: "
	for name, text := range map[string]string{
		"objects": start + "{k8s.pod: [" + strings.Repeat("{},", file.MaxBytes/4) + "]}",
		"lines":   start + "\n  host.run:\n" + strings.Repeat("  -\n", file.MaxBytes/5),
		"lists":   start + strings.Repeat("[", file.MaxBytes/4),
	} {
		if _, err := file.Load([]byte(text)); err == nil || !strings.Contains(err.Error(), "lines and elements of lists") {
			t.Errorf("%s: %.200v", name, err)
		}
	}
	ev, err := situation.Load([]byte("schemaVersion: 1\nat: 2026-11-21T12:00:00Z\nbase: healthy\n"))
	if err != nil {
		t.Fatal(err)
	}
	log := &ev.Nodes[0].First.LogIPAMD.Content
	for i := range 20 {
		at := ev.At.Add(time.Duration(i-100) * time.Second)
		log.Lines = append(log.Lines, evidence.Line{At: at, Level: "error", Msg: strings.Repeat("{,", 60_000)})
	}
	data, dropped, err := file.Fit(ev)
	if err != nil || dropped["log.ipamd"] == 0 {
		t.Fatal(err, dropped)
	}
	if _, err := file.Load(data); err != nil {
		t.Errorf("what was written is refused: %.200v", err)
	}
}
