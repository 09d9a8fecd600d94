package version

import "testing"

func TestTagOf(t *testing.T) {
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
		if got := tagOf(image); got != want {
			t.Errorf("%q: %q, want %q", image, got, want)
		}
	}
}
