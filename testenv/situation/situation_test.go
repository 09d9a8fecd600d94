package situation

import (
	"testing"

	"cnictl/doctor/evidence"
)

const healthyNode = "schemaVersion: 1\nat: 2026-11-21T14:02:11Z\nbase: healthy\n"

const oneNode = `
schemaVersion: 1
at: 2026-11-21T14:02:11Z
base: healthy
interval: 30s
world:
  env: {WARM_ENI_TARGET: "0"}
  subnets:
    - {id: subnet-a, cidr: 10.0.0.0/22, available: 700}
  enis:
    - {id: eni-a, ips: 9, assigned: 9, assignedFor: 20s}
  pods:
    - {pod: shop/cart, count: 3, phase: Pending, reason: ContainerCreating, createdAt: -15s}
sources:
  k8s.evt:
    - at: -4s
      count: 5
      reason: FailedCreatePodSandBox
      name: shop/cart-1
      source: kubelet
      message: 'Failed to create pod sandbox: plugin type="aws-cni" name="aws-cni" failed (add): add cmd: failed to assign an IP address to container'
  log.ipamd:
    lines:
      - {at: -14s, level: error, msg: DataStore has no available IP/Prefix addresses, count: 5, every: 2s}
      - {at: -3s, msg: Successfully created and attached a new ENI eni-b to instance}
  metrics:
    samples:
      awscni_no_available_ip_addresses: 5
later:
  world:
    enis:
      - {id: eni-a, ips: 9, assigned: 9, assignedFor: 50s}
      - {id: eni-b, ips: 9, assigned: 3, assignedFor: 10s}
    pods: []
`

func TestLoad_OneNode(t *testing.T) {
	t.Parallel()
	ev, err := Load([]byte(oneNode))
	if err != nil {
		t.Fatal(err)
	}
	if len(ev.Nodes) != 1 || ev.Scope.Node != "node-1" {
		t.Fatalf("%d nodes, scope %+v", len(ev.Nodes), ev.Scope)
	}
	n := ev.Nodes[0]
	if got := len(n.First.ENIs.Content); got != 1 {
		t.Errorf("%d interfaces at first", got)
	}
	if got := len(n.Second.ENIs.Content); got != 2 {
		t.Errorf("%d interfaces at last", got)
	}
	if got := len(n.First.LogIPAMD.Content.Lines); got != 4 {
		t.Errorf("%d lines", got)
	}
	waiting := 0
	for _, p := range n.First.Pods.Content {
		if p.Phase == "Pending" {
			waiting++
		}
	}
	if waiting != 3 {
		t.Errorf("%d pods wait", waiting)
	}
	if n.First.Metrics.Content.Samples["awscni_no_available_ip_addresses"] != 5 || n.First.Metrics.Content.Samples["awscni_total_ip_addresses"] != 9 {
		t.Errorf("metrics %v", n.First.Metrics.Content.Samples)
	}
	if n.First.Quota.Missing != evidence.MissingMode {
		t.Errorf("quota %+v", n.First.Quota)
	}
}

// TestLoad_PodsOnTheNode: pods of the world are on its node, whatever the node's name.
func TestLoad_PodsOnTheNode(t *testing.T) {
	t.Parallel()
	ev, err := Load([]byte("schemaVersion: 1\nat: 2026-11-21T12:00:00Z\nbase: healthy\nworld: {pods: [{pod: a/b, eni: eni-a}], enis: [{id: eni-a, ips: 2, assigned: 1}], node: other}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range ev.Nodes[0].First.Pods.Content {
		if p.Node == nil || *p.Node != "other" {
			t.Errorf("%s is not on the node", p.Pod)
		}
	}
}
