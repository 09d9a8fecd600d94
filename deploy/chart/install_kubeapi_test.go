package chart_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"cnictl/testenv"
	"cnictl/testenv/kube/kubeapi"
)

// resources maps the kinds of the chart's objects to their API resources.
var resources = map[string]schema.GroupVersionResource{
	"ServiceAccount":           {Version: "v1", Resource: "serviceaccounts"},
	"ConfigMap":                {Version: "v1", Resource: "configmaps"},
	"ClusterRole":              {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	"ClusterRoleBinding":       {Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
	"DaemonSet":                {Group: "apps", Version: "v1", Resource: "daemonsets"},
	"Deployment":               {Group: "apps", Version: "v1", Resource: "deployments"},
	"ENIConfig":                {Group: "crd.k8s.amazonaws.com", Version: "v1alpha1", Resource: "eniconfigs"},
	"CustomResourceDefinition": {Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},

	"ValidatingAdmissionPolicy":        {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"},
	"ValidatingAdmissionPolicyBinding": {Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"},
}

const (
	account  = "aws-node"
	settings = "amazon-vpc-cni"
	crd      = "eniconfigs.crd.k8s.amazonaws.com"
)

// lab is a cluster without a CNI, and helm for it.
type lab struct {
	*testing.T
	s          *kubeapi.Server
	kubeconfig string
}

// newLab removes from the cluster what an earlier test, or the server itself, has installed.
func newLab(t *testing.T) *lab {
	t.Helper()
	s := kubeapi.Shared(t)
	l := &lab{T: t, s: s, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	admin := s.Admin()
	l.check(clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: admin.Host, CertificateAuthorityData: admin.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"a": {ClientCertificateData: admin.CertData, ClientKeyData: admin.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "a"}},
		CurrentContext: "c",
	}, l.kubeconfig))
	secrets := s.Objects().Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(namespace)
	l.check(secrets.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "owner=helm"}))
	for _, kind := range []string{
		"ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy",
		"DaemonSet", "Deployment", "ClusterRoleBinding", "ClusterRole", "ConfigMap", "ServiceAccount",
	} {
		for _, name := range []string{account, settings, helper} {
			l.delete(kind, name)
		}
	}
	l.check(ignoreAbsent(s.Objects().Resource(resources["ENIConfig"]).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})))
	return l
}

func (l *lab) check(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func ignoreAbsent(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (l *lab) of(kind string) dynamic.ResourceInterface {
	all := l.s.Objects().Resource(resources[kind])
	if slices.Contains([]string{"ServiceAccount", "ConfigMap", "DaemonSet", "Deployment"}, kind) {
		return all.Namespace(namespace)
	}
	return all
}

func (l *lab) delete(kind, name string) {
	l.Helper()
	l.check(ignoreAbsent(l.of(kind).Delete(l.Context(), name, metav1.DeleteOptions{})))
}

// exists reports whether an object exists.
func (l *lab) exists(kind, name string) bool {
	l.Helper()
	_, err := l.of(kind).Get(l.Context(), name, metav1.GetOptions{})
	l.check(ignoreAbsent(err))
	return err == nil
}

func (l *lab) daemonSet() *unstructured.Unstructured {
	l.Helper()
	o, err := l.of("DaemonSet").Get(l.Context(), account, metav1.GetOptions{})
	l.check(err)
	return o
}

// apply applies objects as a field manager.
func (l *lab) apply(manager string, all []*unstructured.Unstructured) {
	l.Helper()
	for _, o := range all {
		_, err := l.of(o.GetKind()).Apply(l.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: manager, Force: true})
		l.check(err)
	}
}

// mark makes a release own objects, as upstream's documentation describes.
func (l *lab) mark(all []*unstructured.Unstructured) {
	l.Helper()
	patch := `{"metadata": {"annotations": {"meta.helm.sh/release-name": "aws-vpc-cni", "meta.helm.sh/release-namespace": "kube-system"}, "labels": {"app.kubernetes.io/managed-by": "Helm"}}}`
	for _, o := range all {
		_, err := l.of(o.GetKind()).Patch(l.Context(), o.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-annotate"})
		l.check(err)
	}
}

// helm runs helm for this cluster: VERB aws-vpc-cni ARGS.
func (l *lab) helm(verb string, args ...string) (string, error) {
	l.Helper()
	if len(args) > 0 && args[0] == cni {
		args = append(args, "--set", registry[cni])
	}
	return helm(l.T, append([]string{verb, cni, "--namespace", namespace, "--kubeconfig", l.kubeconfig}, args...)...)
}

func (l *lab) must(verb string, args ...string) {
	l.Helper()
	_, err := l.helm(verb, args...)
	l.check(err)
}

func (l *lab) refused(want, verb string, args ...string) {
	l.Helper()
	if _, err := l.helm(verb, args...); err == nil || !strings.Contains(err.Error(), want) {
		l.Fatalf("helm %s %v: %v, want %q", verb, args, err, want)
	}
}

const upstreamImage = "602401143452.dkr.ecr.us-west-2.amazonaws.com/amazon-k8s-cni:v1.23.1"

// asUpstream returns the values that render upstream's DaemonSet exactly.
func asUpstream(t *testing.T) []string {
	t.Helper()
	const registry = "602401143452.dkr.ecr.us-west-2.amazonaws.com/"
	return []string{
		"--set", "originalMatchLabels=true", "-f", file(t, `
image: {override: `+registry+`amazon-k8s-cni:v1.23.1}
init: {image: {override: `+registry+`amazon-k8s-cni-init:v1.23.1}}
securityContext: {allowPrivilegeEscalation: null, readOnlyRootFilesystem: null, seccompProfile: null, capabilities: {add: [NET_ADMIN, NET_RAW], drop: null}}
`),
	}
}

// upstreamChart writes a chart with upstream's name, the given objects and the values of that version.
func (l *lab) upstreamChart(version, values string, all []*unstructured.Unstructured) string {
	l.Helper()
	dir := filepath.Join(l.TempDir(), cni)
	l.check(os.MkdirAll(filepath.Join(dir, "templates"), 0o755))
	var text strings.Builder
	for _, o := range all {
		data, err := o.MarshalJSON()
		l.check(err)
		fmt.Fprintf(&text, "---\n%s\n", data)
	}
	for name, data := range map[string]string{
		"Chart.yaml":         "{apiVersion: v1, name: aws-vpc-cni, version: " + version + "}\n",
		"values.yaml":        values,
		"templates/all.yaml": text.String(),
	} {
		l.check(os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600))
	}
	return dir
}

// upstreamRelease installs upstream's chart as most users have it, with the default selector.
func (l *lab) upstreamRelease() (chart string) {
	l.Helper()
	all := published(l.T)
	selector := map[string]any{"app.kubernetes.io/name": "aws-node", "app.kubernetes.io/instance": "aws-vpc-cni"}
	l.check(unstructured.SetNestedMap(ofKind(all, "DaemonSet").Object, selector, "spec", "selector", "matchLabels"))
	chart = l.upstreamChart("1.23.1", "", all)
	l.must("install", chart)
	return chart
}

// TestInstall_OverManifest: objects of the published manifest are not adopted by accident, and
// once they are marked, no pod restarts until the template differs.
func TestInstall_OverManifest(t *testing.T) {
	for _, manager := range []string{"kubectl-client-side-apply", "eks"} {
		t.Run(manager, func(t *testing.T) {
			l := newLab(t)
			all := published(t)
			l.apply(manager, all)
			generation := l.daemonSet().GetGeneration()
			l.refused("Set originalMatchLabels to true", "install", cni)
			l.refused(`ServiceAccount "aws-node" in namespace "kube-system" exists and cannot be imported into the current release: invalid ownership metadata`,
				"install", append([]string{cni}, asUpstream(t)...)...)
			if l.daemonSet().GetGeneration() != generation {
				t.Error("a refused install changed something")
			}
			l.mark(all)
			l.must("upgrade", append([]string{cni, "--install"}, asUpstream(t)...)...)
			if g := l.daemonSet().GetGeneration(); g != generation {
				t.Errorf("adopted with equal values: generation %d, want %d", g, generation)
			}
			if out, err := l.helm("status"); err != nil || !strings.Contains(out, "STATUS: deployed") {
				t.Errorf("status: %v %s", err, out)
			}
			l.must("upgrade", cni, "--set", "originalMatchLabels=true")
			if image := l.image(); image != "registry.invalid/cnictl/aws-vpc-cni:dev" || l.daemonSet().GetGeneration() != generation+1 {
				t.Errorf("image %s, generation %d", image, l.daemonSet().GetGeneration())
			}
			l.must("rollback", "1")
			if image := l.image(); !strings.HasSuffix(image, "amazon-k8s-cni:v1.23.1") {
				t.Errorf("after the rollback: image %s", image)
			}
		})
	}
}

// image returns the daemon's image.
func (l *lab) image() string {
	l.Helper()
	containers, _, err := unstructured.NestedSlice(l.daemonSet().Object, "spec", "template", "spec", "containers")
	l.check(err)
	image, _ := containers[0].(map[string]any)["image"].(string)
	return image
}

// manifest returns what the release has applied.
func (l *lab) manifest() string {
	l.Helper()
	out, err := helm(l.T, "get", "manifest", cni, "--namespace", namespace, "--kubeconfig", l.kubeconfig)
	l.check(err)
	return out
}

// TestInstall_TakeOwnership: Helm's --take-ownership replaces the marks.
func TestInstall_TakeOwnership(t *testing.T) {
	l := newLab(t)
	l.apply("kubectl-client-side-apply", published(t))
	generation := l.daemonSet().GetGeneration()
	l.must("install", append([]string{cni, "--take-ownership"}, asUpstream(t)...)...)
	if g := l.daemonSet().GetGeneration(); g != generation {
		t.Errorf("generation %d, want %d", g, generation)
	}
}

// TestInstall_OverRelease: a release of upstream's chart upgrades to ours and back with its
// selector. With another selector, the upgrade is refused, and the error says what to set.
func TestInstall_OverRelease(t *testing.T) {
	l := newLab(t)
	upstream := l.upstreamRelease()
	l.refused("Set originalMatchLabels to false", "upgrade", cni, "--set", "originalMatchLabels=true")
	l.refused("Set originalMatchLabels to false, or the name, podLabels", "upgrade", cni, "--set", "podLabels.a=b")
	l.must("upgrade", cni)
	if image := l.image(); image != "registry.invalid/cnictl/aws-vpc-cni:dev" {
		t.Errorf("after the upgrade: image %s", image)
	}
	l.must("upgrade", upstream, "--reset-values")
	if image := l.image(); !strings.HasSuffix(image, "amazon-k8s-cni:v1.23.1") {
		t.Errorf("after the downgrade: image %s", image)
	}
	l.must("rollback", "2")
	if image := l.image(); image != "registry.invalid/cnictl/aws-vpc-cni:dev" {
		t.Errorf("after the rollback: image %s", image)
	}
}

// TestUpgrade_Account: values that name upstream's registry are refused, and the error says
// how to remove them from the release's values.
func TestUpgrade_Account(t *testing.T) {
	l := newLab(t)
	l.must("install", l.upstreamChart("1.23.1", "", nil), "--set-string", "image.account=602401143452,image.tag=v1.23.1,init.image.account=602401143452,init.image.tag=v1.23.1")
	l.refused("(--set image.account=null,image.tag=null,init.image.account=null,init.image.tag=null)", "upgrade", cni, "--reset-then-reuse-values")
	l.must("upgrade", cni, "--reset-then-reuse-values", "--set", "image.account=null,image.tag=null,init.image.account=null,init.image.tag=null")
	if image := l.image(); image != "registry.invalid/cnictl/aws-vpc-cni:dev" {
		t.Errorf("image %s", image)
	}
}

// TestUpgrade_ReuseValues: the values of upstream's minors are refused, because they would bring
// back its images and probes. --reset-then-reuse-values keeps what the user set.
func TestUpgrade_ReuseValues(t *testing.T) {
	l := newLab(t)
	for _, minor := range []int{13, 14, 19} { // since which its values have the same keys
		values := fmt.Sprintf(`
image: {tag: v1.%d.0, region: us-west-2, account: "602401143452", domain: amazonaws.com, pullPolicy: IfNotPresent}
init: {image: {tag: v1.%d.0}, env: {DISABLE_TCP_EARLY_DEMUX: "false"}}
env: {WARM_ENI_TARGET: "1", VPC_CNI_VERSION: v1.%d.0}
livenessProbe: {exec: {command: [/app/grpc-health-probe, "-addr=:50051"]}}
`, minor, minor, minor)
		if minor >= 14 {
			values += "nodeAgent: {enabled: true, image: {tag: v1.0.0}}\n"
		}
		if minor >= 19 {
			values += "podMonitor: {create: false}\n"
		}
		// The release needs no object: Helm only keeps its chart and values.
		old := l.upstreamChart(fmt.Sprintf("1.%d.0", minor), values, nil)
		l.must("upgrade", old, "--install", "--reset-values", "--set", "env.WARM_ENI_TARGET=3")
		l.refused("--reuse-values brought those of the chart that is installed", "upgrade", cni, "--reuse-values")
	}
	l.must("upgrade", cni, "--reset-then-reuse-values")
	if image := l.image(); image != "registry.invalid/cnictl/aws-vpc-cni:dev" {
		t.Errorf("image %s", image)
	}
	if !strings.Contains(l.manifest(), "name: WARM_ENI_TARGET\n              value: \"3\"") {
		t.Error("what was set is lost")
	}
	l.must("upgrade", cni, "--reuse-values")
}

// olderChart is this chart at v0, with changes: the file, the current text, the old text.
func (l *lab) olderChart(changes ...[3]string) string {
	l.Helper()
	older := filepath.Join(l.TempDir(), cni)
	l.check(os.CopyFS(older, os.DirFS(cni)))
	for _, change := range append(changes, [3]string{"Chart.yaml", "appVersion: dev", "appVersion: v0"}, [3]string{"templates/daemonset.yaml", `"tag" "v`, `"tag" "v0.`}) {
		name := filepath.Join(older, change[0])
		text := readFile(l.T, name)
		if !strings.Contains(text, change[1]) {
			l.Fatalf("%s has no %s", change[0], change[1])
		}
		l.check(os.WriteFile(name, []byte(strings.Replace(text, change[1], change[2], 1)), 0o600))
	}
	return older
}

// TestUpgrade_OwnValues: no default of an older version of our chart selects an image after an
// upgrade, even with --reuse-values.
func TestUpgrade_OwnValues(t *testing.T) {
	l := newLab(t)
	l.must("install", l.olderChart(), "--set", registry[cni])
	if image := l.image(); image != "registry.invalid/cnictl/aws-vpc-cni:v0" {
		t.Errorf("before: image %s", image)
	}
	l.must("upgrade", cni, "--reuse-values")
	of := func(manifest string) (out []string) {
		for line := range strings.SplitSeq(manifest, "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "image: ") {
				out = append(out, line)
			}
		}
		return out
	}
	if have, want := of(l.manifest()), of(mustRender(t, cni)); len(want) != 3 || !slices.Equal(have, want) {
		t.Errorf("after: %q, want %q", have, want)
	}
}

// TestUpgrade_OwnDefaults: --reuse-values from an older version of our chart with other defaults
// (here of a probe) is refused, because it would bring them back. A pinned tag survives each of the
// alternatives that the error names, none of which is refused.
func TestUpgrade_OwnDefaults(t *testing.T) {
	l := newLab(t)
	_, digest, _ := strings.Cut(readFile(t, "aws-vpc-cni/values.yaml"), "\ndefaultsDigest: ")
	digest = strings.TrimSpace(digest)
	const delay, was = "initialDelaySeconds: 60", "initialDelaySeconds: 59"
	older := l.olderChart([3]string{"values.yaml", delay, was}, [3]string{"values.yaml", digest, `"older"`}, [3]string{"values.schema.json", digest, `"older"`})
	copied := file(t, readFile(t, filepath.Join(older, "values.yaml")))
	for i, accepted := range [][]string{{"--reset-then-reuse-values"}, {"-f", file(t, "image: {tag: v0}")}, {"-f", copied, "--set-string", "image.tag=v0,defaultsDigest=" + strings.Trim(digest, `"`)}} {
		l.must("upgrade", older, "--install", "--reset-values", "--set", registry[cni]+",image.tag=v0")
		if i == 0 {
			if !strings.Contains(l.manifest(), was) {
				t.Fatalf("the older chart renders\n%s", l.manifest())
			}
			const says = "Use --reset-then-reuse-values, or -f with your own values, without the defaultsDigest of a copied values.yaml"
			l.refused(says, "upgrade", cni, "--reuse-values")
			l.refused(says, "upgrade", cni, "--reuse-values", "--set", "image.tag=v1")
			l.refused(says, "upgrade", cni, "-f", copied)
		}
		l.must("upgrade", append([]string{cni}, accepted...)...)
		if image := l.image(); image != "registry.invalid/cnictl/aws-vpc-cni:v0" || strings.Contains(l.manifest(), was) != slices.Contains(accepted, copied) {
			t.Errorf("%q: image %s in\n%s", accepted, image, l.manifest())
		}
		l.must("upgrade", cni, "--reuse-values", "--set", "image.tag=v1")
	}
}

// TestUpgrade_CRD: up to chart 1.2.0, the ENIConfig CRD was an object
// of the release, which an upgrade would delete along with all ENIConfigs.
func TestUpgrade_CRD(t *testing.T) {
	l := newLab(t)
	existing := objects(t, readFile(t, "aws-vpc-cni/crds/eniconfig.yaml"))
	l.mark(existing) // the server already has it
	t.Cleanup(func() {
		patch := `{"metadata": {"annotations": {"meta.helm.sh/release-name": null, "helm.sh/resource-policy": null}}}`
		_, err := l.of("CustomResourceDefinition").Patch(context.WithoutCancel(t.Context()), crd, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		l.check(err)
	})
	l.must("install", l.upstreamChart("1.2.0", "", existing))
	l.apply("kubectl", objects(t, "{apiVersion: crd.k8s.amazonaws.com/v1alpha1, kind: ENIConfig, metadata: {name: mine}, spec: {subnet: subnet-1}}"))
	l.refused("this upgrade would delete it with every ENIConfig. Keep it: kubectl annotate crd "+crd+" helm.sh/resource-policy=keep", "upgrade", cni)
	_, err := l.of("CustomResourceDefinition").Patch(t.Context(), crd, types.MergePatchType, []byte(`{"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}}`), metav1.PatchOptions{})
	l.check(err)
	l.must("upgrade", cni)
	if !l.exists("CustomResourceDefinition", crd) || !l.exists("ENIConfig", "mine") {
		t.Error("the upgrade deleted ENIConfigs")
	}
}

// TestUpgrade_WithoutRight: a user who may change every object of a release but not read CRDs can
// upgrade only with preflight=false.
func TestUpgrade_WithoutRight(t *testing.T) {
	l := newLab(t)
	l.must("install", cni)
	deployer := objects(t, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: deployer}
rules: [{apiGroups: ["", apps, rbac.authorization.k8s.io], resources: ["*"], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: deployer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: deployer}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: deployer}]
`)
	l.apply("kubectl", deployer)
	t.Cleanup(func() {
		for _, o := range deployer {
			l.check(l.of(o.GetKind()).Delete(context.WithoutCancel(t.Context()), o.GetName(), metav1.DeleteOptions{}))
		}
	})
	as := []string{cni, "--kube-as-user", "deployer"}
	testenv.Eventually(l, "the rights", func() bool { // the authorizer watches roles
		_, err := l.helm("status", as[1:]...)
		return err == nil
	})
	l.refused(`customresourcedefinitions.apiextensions.k8s.io "`+crd+`" is forbidden`, "upgrade", as...)
	l.must("upgrade", append(as, "--set", "preflight=false")...)
}

// TestUninstall: what is removed with a release, and what stays.
func TestUninstall(t *testing.T) {
	l := newLab(t)
	l.apply("kubectl", objects(t, "{apiVersion: crd.k8s.amazonaws.com/v1alpha1, kind: ENIConfig, metadata: {name: mine}, spec: {subnet: subnet-1}}"))
	l.must("install", cni, "--set", "cniConfig.enabled=true,cniConfig.fileContents=x,eniConfig.create=true,eniConfig.subnets.made.id=subnet-2")
	released := map[string][]string{
		"DaemonSet": {account}, "ServiceAccount": {account}, "ClusterRole": {account}, "ClusterRoleBinding": {account},
		"ConfigMap": {account, settings}, "ENIConfig": {"made"},
	}
	for kind, names := range released {
		for _, name := range names {
			if !l.exists(kind, name) {
				t.Errorf("installed: no %s %s", kind, name)
			}
		}
	}
	l.must("uninstall")
	for kind, names := range released {
		for _, name := range names {
			if l.exists(kind, name) {
				t.Errorf("uninstalled: %s %s is still there", kind, name)
			}
		}
	}
	if !l.exists("CustomResourceDefinition", crd) || !l.exists("ENIConfig", "mine") {
		t.Error("the uninstall deleted the CRD or an ENIConfig that the release did not make")
	}
}

// TestInstall_Tolerations: Helm warns that an empty list leaves tainted nodes without a CNI.
func TestInstall_Tolerations(t *testing.T) {
	l := newLab(t)
	const warned = "the CNI does not run on tainted nodes"
	for list, want := range map[string]bool{"[]": true, `[{"operator":"Exists"}]`: false} {
		out, err := l.helm("upgrade", cni, "--install", "--set-json", "tolerations="+list)
		l.check(err)
		if strings.Contains(out, warned) != want {
			t.Errorf("tolerations %s: warned %t in\n%s", list, !want, out)
		}
	}
}

// TestUpgrade_Drift: an upgrade resets the fields that the chart renders, and keeps variables
// and keys unknown to the chart.
func TestUpgrade_Drift(t *testing.T) {
	l := newLab(t)
	l.must("install", cni)
	set := l.daemonSet()
	containers, _, err := unstructured.NestedSlice(set.Object, "spec", "template", "spec", "containers")
	l.check(err)
	c := containers[0].(map[string]any)
	for _, e := range c["env"].([]any) {
		if e := e.(map[string]any); e["name"] == "WARM_ENI_TARGET" {
			e["value"] = "7"
		}
	}
	c["env"] = append(c["env"].([]any), map[string]any{"name": "FOO", "value": "bar"})
	l.check(unstructured.SetNestedSlice(set.Object, containers, "spec", "template", "spec", "containers"))
	_, err = l.of("DaemonSet").Update(t.Context(), set, metav1.UpdateOptions{FieldManager: "kubectl-set"})
	l.check(err)
	_, err = l.of("ConfigMap").Patch(t.Context(), settings, types.MergePatchType, []byte(`{"data": {"enable-branch-eni-prefix-delegation": "true"}}`), metav1.PatchOptions{})
	l.check(err)
	l.must("upgrade", cni, "--set", "enableNetworkPolicy=true")
	env := map[string]string{}
	containers, _, err = unstructured.NestedSlice(l.daemonSet().Object, "spec", "template", "spec", "containers")
	l.check(err)
	for _, e := range containers[0].(map[string]any)["env"].([]any) {
		value, _ := e.(map[string]any)["value"].(string)
		env[e.(map[string]any)["name"].(string)] = value
	}
	if env["WARM_ENI_TARGET"] != "1" || env["FOO"] != "bar" {
		t.Errorf("environment %v", env)
	}
	agent := containers[1].(map[string]any)["args"].([]any)
	config, err := l.of("ConfigMap").Get(t.Context(), settings, metav1.GetOptions{})
	l.check(err)
	data, _, _ := unstructured.NestedStringMap(config.Object, "data")
	if data["enable-network-policy-controller"] != "true" || data["enable-branch-eni-prefix-delegation"] != "true" || !slices.Contains(agent, any("--enable-network-policy=true")) {
		t.Errorf("settings %v, agent %v", data, agent)
	}
}

// TestRights: what the API server allows the pods of a release to do.
func TestRights(t *testing.T) {
	l := newLab(t)
	reviews := l.s.Objects().Resource(schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews"})
	allowed := func(verb, resource, group string) bool {
		t.Helper()
		resource, sub, _ := strings.Cut(resource, "/")
		review, err := reviews.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
			"spec": map[string]any{
				"user": "system:serviceaccount:kube-system:aws-node",
				"resourceAttributes": map[string]any{
					"verb": verb, "group": group, "resource": resource, "subresource": sub,
				},
			},
		}}, metav1.CreateOptions{})
		l.check(err)
		is, _, _ := unstructured.NestedBool(review.Object, "status", "allowed")
		return is
	}
	rows := []struct {
		resource, group string
		may, mayNot     []string
	}{
		{"eniconfigs", "crd.k8s.amazonaws.com", []string{"get", "list", "watch"}, []string{"create", "patch", "delete"}},
		{"namespaces", "", []string{"get", "list", "watch"}, []string{"create"}},
		{"nodes", "", []string{"get", "list", "watch"}, []string{"update", "patch"}},
		{"pods", "", []string{"get", "list", "watch"}, []string{"create", "update", "delete"}},
		{"pods/exec", "", nil, []string{"create"}},
		{"configmaps", "", nil, []string{"get", "list"}},
		{"secrets", "", nil, []string{"get", "list"}},
		{"leases", "coordination.k8s.io", nil, []string{"get", "update"}},
		{"events", "", []string{"create", "patch", "list"}, []string{"delete"}},
		{"events", "events.k8s.io", []string{"create", "patch", "list"}, []string{"delete"}},
		{"policyendpoints", "networking.k8s.aws", []string{"get", "list", "watch"}, []string{"update"}},
		{"clusterpolicyendpoints", "networking.k8s.aws", []string{"get", "list", "watch"}, []string{"update"}},
		{"policyendpoints/status", "networking.k8s.aws", []string{"get"}, []string{"update"}},
		{"cninodes", "vpcresources.k8s.aws", []string{"get", "list", "watch", "patch"}, []string{"create", "delete"}},
	}
	for _, annotate := range []bool{false, true} {
		l.must("upgrade", cni, "--install", "--set", fmt.Sprintf("env.ANNOTATE_POD_IP=%t", annotate))
		// The authorizer watches roles, so changes take a moment.
		testenv.Eventually(l, "the rights", func() bool {
			return allowed("list", "eniconfigs", "crd.k8s.amazonaws.com") && allowed("patch", "pods", "") == annotate
		})
		for _, row := range rows {
			for _, verb := range row.may {
				if !allowed(verb, row.resource, row.group) {
					t.Errorf("may not %s %s.%s", verb, row.resource, row.group)
				}
			}
			for _, verb := range row.mayNot {
				if allowed(verb, row.resource, row.group) {
					t.Errorf("may %s %s.%s", verb, row.resource, row.group)
				}
			}
		}
	}
}

func section(t *testing.T, page, title string) string {
	t.Helper()
	_, text, found := strings.Cut(readFile(t, page), "# "+title+"\n")
	if !found {
		t.Fatalf("%s has no section %q", page, title)
	}
	text, _, _ = strings.Cut(text, "\n#")
	return text
}

// TestInstall_Refusals: docs/install.md lists every refusal of the chart, and no others except
// Helm's own.
func TestInstall_Refusals(t *testing.T) {
	var says []string
	for _, file := range slices.Concat(glob(t, "aws-vpc-cni/templates/*"), []string{"aws-vpc-cni/values.schema.json"}) {
		for _, m := range refusal.FindAllStringSubmatch(readFile(t, file), -1) {
			says = append(says, strings.ReplaceAll(m[1], `\"`, `"`))
		}
	}
	var listed []string
	for line := range strings.SplitSeq(section(t, "../../docs/install.md", "What is refused"), "\n") {
		if text, ok := strings.CutPrefix(line, "| `"); ok {
			text, _, _ = strings.Cut(text, "`")
			listed = append(listed, text)
			if text != "invalid ownership metadata" && !slices.ContainsFunc(says, func(s string) bool { return strings.Contains(s, text) }) {
				t.Errorf("docs/install.md lists %q, which the chart does not say", text)
			}
		}
	}
	for _, s := range says {
		if !slices.ContainsFunc(listed, func(text string) bool { return strings.Contains(s, text) }) {
			t.Errorf("docs/install.md does not list %q", s)
		}
	}
	if len(says) < 20 {
		t.Errorf("found only %q", says)
	}
}

// refusal matches a sentence of the schema or of a template.
var refusal = regexp.MustCompile(`(?:"const": |fail (?:\(printf )?)"((?:[^"\\]|\\.)* (?:[^"\\]|\\.)*)"`)

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return files
}
