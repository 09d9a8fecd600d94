//go:build nightly

package cluster_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"cnictl/testenv"
	"cnictl/testenv/kube/cluster"
	"cnictl/testenv/kube/kubeapi"
	"cnictl/testenv/text/tour"
)

func init() {
	stages = append(stages, stage{"upgrade", (*lab).upgrades}, stage{"selector", (*lab).changesSelector}, stage{"move_and_back", (*lab).moves})
}

// nextTag simulates a second version: there is only one build here.
const nextTag = "next"

// upgrades to images with another tag, keeping the values of the previous release, and rolls back:
// nodes that come later lack the tag.
func (l *lab) upgrades() {
	l.tag("docker.io/cnictl/aws-vpc-cni:"+nextTag, "docker.io/cnictl/aws-vpc-cni-init:"+nextTag)
	l.rolls("upgrade", func() {
		l.helm("upgrade", cluster.Release, l.c.Chart(), "--reuse-values", "--set", "global.image.tag="+nextTag)
	})
	if l.env("AWS_ENDPOINT_URL_EC2") == "" || l.env("VPC_CNI_VERSION") != nextTag {
		l.Errorf("after the upgrade the EC2 endpoint is %q, the version %q", l.env("AWS_ENDPOINT_URL_EC2"), l.env("VPC_CNI_VERSION"))
	}
	l.helm("rollback", cluster.Release)
	l.rolled()
	if l.env("VPC_CNI_VERSION") == nextTag {
		l.Error("the release is not rolled back")
	}
}

// tag adds names for the daemon and init images on each node.
func (l *lab) tag(daemon, initial string) {
	l.Helper()
	programs, err := kubeapi.ProgramDir()
	l.check(err)
	for _, m := range l.c.Machines[:3] {
		for image, name := range map[string]string{"aws-vpc-cni": daemon, "aws-vpc-cni-init": initial} {
			_, err := m.Output(filepath.Join(programs, "ctr"), "-n", "k8s.io", "images", "tag", "--force", "docker.io/cnictl/"+image+":dev", name)
			l.check(err)
		}
	}
}

func (l *lab) daemonSet() *appsv1.DaemonSet {
	l.Helper()
	set, err := cluster.Get[appsv1.DaemonSet](l.Context(), l.c, cluster.SystemNamespace, "aws-node")
	l.check(err)
	return set
}

// env returns a variable of the daemon from the DaemonSet.
func (l *lab) env(name string) string {
	l.Helper()
	for _, v := range l.daemonSet().Spec.Template.Spec.Containers[0].Env {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

// rolled waits until every node has a Ready CNI pod of the DaemonSet's current template.
func (l *lab) rolled() {
	l.Helper()
	testenv.EventuallyErr(l, "the DaemonSet to be rolled out", l.rolling)
}

// changesSelector to the manifest's selector, without ending a pod of the CNI.
func (l *lab) changesSelector() {
	before := l.cniPods()
	args := []string{"upgrade", cluster.Release, l.c.Chart(), "--values", l.c.Values, "--set", "originalMatchLabels=true"}
	l.refuses(`a selector never changes. Set originalMatchLabels to false`, args...)
	l.kubectl("", "delete", "daemonset", "aws-node", "--cascade=orphan")
	l.helm(args...)
	l.rolled()
	l.samePods(before)
}

// uninstalls: running pods keep working, new ones wait for a CNI.
func (l *lab) uninstalls() {
	l.helm("uninstall", cluster.Release, "--wait")
	for _, m := range l.c.Machines[:3] {
		testenv.EventuallyErr(l, "the CNI's pod to be gone", func() error {
			if p, err := m.CNIPod(l.Context()); err == nil {
				return errors.New(p.Name + " is there")
			}
			return nil
		})
	}
	l.kubectl("", "get", "customresourcedefinition", "eniconfigs.crd.k8s.amazonaws.com") // and with it every ENIConfig
	for _, gone := range []string{"serviceaccount/aws-node", "configmap/amazon-vpc-cni", "clusterrole/aws-node", "clusterrolebinding/aws-node"} {
		if out := l.kubectl("", "get", gone, "--ignore-not-found", "--output", "name"); out != "" {
			l.Errorf("after the release there is %s", out)
		}
	}
	l.creates("waits", 3)
	testenv.EventuallyErr(l, "kubelet to be refused an address", func() error {
		if l.refusals("waits-") == 0 {
			return errors.New("no event")
		}
		return nil
	})
}

// manifest returns upstream's manifest: the chart rendered for a manifest, without what only
// Helm writes.
func (l *lab) manifest(args ...string) string {
	l.Helper()
	rendered := l.helm(append([]string{"template", cluster.Release, l.c.Chart(), "--values", l.c.Values, "--set", "originalMatchLabels=true,admissionPolicy.create=false"}, args...)...)
	return regexp.MustCompile(`(?m)^ +(helm\.sh/chart|app\.kubernetes\.io/managed-by): .*\n`).ReplaceAllString(rendered, "")
}

// moves from ours to upstream's manifest, which serves the pods that waited for a CNI, and from it
// to ours and back, as described in docs/migrate.md, which shows the commands and output of this
// test.
func (l *lab) moves() {
	l.uninstalls()
	programs, err := kubeapi.ProgramDir()
	l.check(err)
	d := deskOf(l.T, l.c.Kubeconfig, programs)
	const upstream = "602401143452.dkr.ecr.us-west-2.amazonaws.com/amazon-k8s-cni"
	l.tag(upstream+":v1.23.1", upstream+"-init:v1.23.1")
	l.tag("registry.example/aws-vpc-cni:v1", "registry.example/aws-vpc-cni-init:v1")
	d.write("upstream.yaml", l.manifest("--values", filepath.Join(d.dir, "adopt.yaml")))

	var typed strings.Builder
	types := func(commands ...string) {
		l.Helper()
		for _, c := range commands {
			typed.WriteString("$ " + c + "\n" + varies.ReplaceAllString(d.run(c), ""))
		}
	}
	const (
		rolledOut = "kubectl rollout status daemonset/aws-node --namespace kube-system"
		now       = "kubectl get daemonset aws-node --namespace kube-system --output custom-columns=GENERATION:.metadata.generation,IMAGE:.spec.template.spec.containers[0].image"
		pods      = "kubectl get pods flow-a flow-b flow-c"
	)
	types("kubectl apply -f upstream.yaml", rolledOut, now)
	l.rolled()
	l.allRun("waits", 3)
	before, generation := l.cniPods(), l.daemonSet().Generation
	text := page(l.T, "docs/migrate.md")
	carry, way := commandsOf(l.T, text, "Carry the settings over"), commandsOf(l.T, text, "With Helm")
	types(carry[2]) // the settings
	types(way[0], now)
	l.samePods(before)
	if g := l.daemonSet().Generation; g != generation {
		l.Errorf("adopted: generation %d, was %d", g, generation)
	}
	for i, command := range way[2:] {
		l.rolls(fmt.Sprintf("move-%d", i), func() { types(command) })
		types(rolledOut, now, pods)
	}
	for _, m := range l.c.Machines[:3] {
		for _, command := range commandsOf(l.T, text, "After going back") {
			_, err := m.Output("sh", "-c", command)
			l.check(err)
		}
	}
	pages := tour.NewPages(l.T, "docs/migrate.md")
	pages.Code("docs/migrate.md", "transcript", typed.String())

	l.helm("upgrade", cluster.Release, l.c.Chart(), "--values", l.c.Values, "--set", "originalMatchLabels=true")
	l.rolled()
}

// varies matches output that differs each time or is irrelevant.
var varies = regexp.MustCompile(`(?ms)^(Release "|NAME: |LAST DEPLOYED: |NAMESPACE: |DESCRIPTION: |TEST SUITE: |Waiting for )[^\n]*\n|^NOTES:\n.*| +(AGE|(\d+[smh])+)$`)

// refuses runs helm, which must fail with the given reason.
func (l *lab) refuses(why string, args ...string) {
	l.Helper()
	if _, err := l.c.Helm(l.Context(), args...); err == nil || !strings.Contains(err.Error(), why) {
		l.Fatalf("helm: %v, want %q", err, why)
	}
}

func (l *lab) samePods(before map[string]string) {
	l.Helper()
	for node, now := range l.cniPods() {
		if now != before[node] {
			l.Errorf("the CNI's pod on %s is %s, was %s", node, now, before[node])
		}
	}
}

// creates creates pods on the nodes in turn.
func (l *lab) creates(name string, number int) {
	l.Helper()
	for i := range number {
		l.create(fmt.Sprintf("%s-%d", name, i), l.c.Machines[i%3])
	}
}
