//go:build nightly

package chart_test

import (
	"slices"
	"strings"
	"testing"

	"cnictl/testenv/text/tour"
)

// TestUpgrade_Page runs the commands by which docs/migrate.md upgrades a release of upstream's chart,
// and those for the way back. testenv/kube/cluster runs the commands of the other sections and of
// docs/install.md.
func TestUpgrade_Page(t *testing.T) {
	values := file(t, tour.Files(readFile(t, "../../docs/install.md"), "yaml")[0])
	l := newLab(t)
	l.must("upgrade", l.upstreamRelease(), "--set-string", "image.account=602401143452,init.image.account=602401143452,image.tag=v1.23.1,init.image.tag=v1.23.1",
		"--set-string", "env.WARM_ENI_TARGET=3,init.image.overrideRepository=mirror.example/amazon-k8s-cni-init,nodeAgent.image.tag=v1.2.1")
	var images []string // of the daemon, after each command
	for _, command := range tour.Commands(section(t, "../../docs/migrate.md", "From a release of upstream's chart")) {
		args := strings.Fields(strings.NewReplacer("deploy/chart/", "", "values.yaml", values).Replace(command))
		if _, err := helm(t, append(args[1:], "--kubeconfig", l.kubeconfig)...); err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		images = append(images, l.image())
		if args[1] == "upgrade" && !strings.Contains(l.manifest(), "name: WARM_ENI_TARGET\n              value: \"3\"") {
			t.Error("what was set is lost")
		}
		if m := l.manifest(); args[1] == "upgrade" && (strings.Contains(m, "mirror.example/") || strings.Contains(m, ":v1.2.1")) {
			t.Error("images of upstream's release stay")
		}
	}
	if want := []string{upstreamImage, "registry.example/aws-vpc-cni:v1", upstreamImage}; !slices.Equal(images, want) {
		t.Errorf("images after the commands:\n%q, want\n%q", images, want)
	}
}
