package file

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const healthyNode = "schemaVersion: 1\nat: 2026-11-21T14:02:11Z\nbase: healthy\n"

// TestSave_RoundTrip: what was saved reads as what there was.
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
			want, err := Load([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			saved, err := Save(want)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Load(saved)
			if err != nil {
				t.Fatalf("%v in\n%s", err, saved)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); diff != "" {
				t.Errorf("read again (-want +got):\n%s", diff)
			}
		})
	}
}
