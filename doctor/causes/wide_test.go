package causes

import (
	"testing"

	"cnictl/daemon/fleet/document"
	"cnictl/testenv/situation"
	"cnictl/testenv/situation/corpus"
)

// TestWide: what is about the cluster, or about a pod that no node has, is reported once, and of no node.
func TestWide(t *testing.T) {
	t.Parallel()
	for code, x := range map[string]struct{ pod, sources string }{
		"boot/webhook": {"", "k8s.wh: {with: [{name: vpc-resource-mutating-webhook, failurePolicy: Fail, reachable: false}]}"},
		"obs/pod-unschedulable": {"iis/web", "k8s.pod: {with: [{pod: iis/web, phase: Pending, node: null, createdAt: -9m, " +
			"message: '0/2 nodes are available: 2 Insufficient vpc.amazonaws.com/PrivateIPv4Address.'}]}"},
		"obs/image-releases": {"", "k8s.ds: {images: {aws-vpc-cni-init: 'amazon-k8s-cni-init:v1.11.4'}}"},
	} {
		ev, err := situation.Load([]byte("schemaVersion: 1\nat: 2026-11-21T14:02:11Z\nbase: healthy\nmode: laptop\n" +
			"nodes: [{world: {node: a}}, {world: {node: b}}]\nsources: {" + x.sources + "}\n"))
		if err != nil {
			t.Fatal(err)
		}
		r := Diagnose(ev, Options{})
		want := document.FindingScope{Cluster: true, Pod: x.pod}
		if len(r.Findings) != 1 || r.Findings[0].Code != code || r.Findings[0].Scope != want || len(r.Findings[0].Nodes) != 0 ||
			len(r.Findings[0].PerNode) != 0 {
			t.Errorf("%s: found %+v\n%s", code, r.Findings, corpus.Printed(r))
		}
	}
}
