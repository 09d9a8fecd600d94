package document

import (
	"testing"

	"cnictl/daemon/api/introspect"
)

func TestDaemonPod_Tag(t *testing.T) {
	t.Parallel()
	for image, want := range map[string]string{
		"602401143452.dkr.ecr.eu-west-1.amazonaws.com/amazon-k8s-cni:v1.23.1": "v1.23.1",
		"registry:5000/aws-node":                "",
		"registry:5000/aws-node:v2@sha256:0123": "v2",
		"aws-node@sha256:0123456789abcdef0123":  "sha256:0123456789ab",
		"aws-node@":                             "",
		"":                                      "",
		"aws-node:":                             "",
	} {
		if got := (DaemonPod{Image: image}).Tag(); got != want {
			t.Errorf("%q: %q, want %q", image, got, want)
		}
	}
}

func TestDaemonVersion(t *testing.T) {
	t.Parallel()
	object := &NodeObject{Daemon: &DaemonPod{Image: "amazon-k8s-cni:v1.21.1"}}
	for want, n := range map[string]NodeIPAM{
		"":        {Summary: &introspect.Summary{}, Object: &NodeObject{}},
		"v1.21.1": {Summary: &introspect.Summary{}, Object: object},
		"v2.0.0":  {Summary: &introspect.Summary{Version: "v2.0.0"}, Object: object},
	} {
		if got := n.DaemonVersion(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := (NodeIPAM{Object: object}).DaemonVersion(); got != "v1.21.1" {
		t.Errorf("of a node that was not read: %q", got)
	}
}
