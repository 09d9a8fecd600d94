package chart_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/aymanbagabas/go-udiff"
	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"cnictl/deploy"
	"cnictl/testenv/text/golden"
)

// helmLabels are set by Helm and missing in plain manifests.
var helmLabels = []string{"helm.sh/chart", "app.kubernetes.io/managed-by"}

func withoutLabels(all []*unstructured.Unstructured, names ...string) []*unstructured.Unstructured {
	for _, o := range all {
		labels := o.GetLabels()
		for _, name := range names {
			delete(labels, name)
		}
		o.SetLabels(labels)
	}
	return all
}

// masked hides permitted differences from upstream's DaemonSet: the version, the names of our two
// images, the order of volumes, and the restrictions of the main container.
func masked(all []*unstructured.Unstructured) []map[string]any {
	var out []map[string]any
	for _, o := range withoutLabels(all, append(helmLabels, "app.kubernetes.io/version")...) {
		out = append(out, o.Object)
		if o.GetKind() != "DaemonSet" {
			continue
		}
		spec := o.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
		slices.SortFunc(spec["volumes"].([]any), func(a, b any) int {
			return cmp.Compare(a.(map[string]any)["name"].(string), b.(map[string]any)["name"].(string))
		})
		for _, c := range slices.Concat(spec["initContainers"].([]any), spec["containers"].([]any)) {
			c := c.(map[string]any)
			if c["name"] != "aws-eks-nodeagent" {
				name, _, _ := strings.Cut(path.Base(c["image"].(string)), ":")
				c["image"] = strings.Replace(name, "amazon-k8s-cni", "aws-vpc-cni", 1)
			}
			if c["name"] != "aws-node" {
				continue
			}
			security := c["securityContext"].(map[string]any)
			delete(security, "allowPrivilegeEscalation")
			delete(security, "readOnlyRootFilesystem")
			delete(security, "seccompProfile")
			capabilities := security["capabilities"].(map[string]any)
			delete(capabilities, "drop")
			capabilities["add"] = slices.DeleteFunc(capabilities["add"].([]any), func(name any) bool { return name == "DAC_OVERRIDE" }) // one of the runtime's defaults
			for _, e := range c["env"].([]any) {
				if e := e.(map[string]any); e["name"] == "VPC_CNI_VERSION" {
					e["value"] = "VERSION"
				}
			}
		}
	}
	return out
}

// TestRender_Upstream: in both modes the objects match upstream's, so replacing the image
// or the chart is the whole migration.
func TestRender_Upstream(t *testing.T) {
	t.Parallel()
	for mode, selector := range map[string]map[string]any{
		"true":  {"k8s-app": "aws-node"},
		"false": {"app.kubernetes.io/name": "aws-node", "app.kubernetes.io/instance": "aws-vpc-cni"},
	} {
		want := published(t)
		if err := unstructured.SetNestedMap(ofKind(want, "DaemonSet").Object, selector, "spec", "selector", "matchLabels"); err != nil {
			t.Fatal(err)
		}
		have := objects(t, mustRender(t, cni, "--set", "originalMatchLabels="+mode))
		if diff := gocmp.Diff(masked(want), masked(have)); diff != "" {
			t.Errorf("originalMatchLabels=%s (-upstream +ours):\n%s", mode, diff)
		}
	}
}

// TestRender_Manifests: the plain manifests are the charts without the two Helm labels.
func TestRender_Manifests(t *testing.T) {
	t.Parallel()
	for chart, plain := range map[string]func() ([]*unstructured.Unstructured, error){cni: deploy.Manifest, helper: deploy.MetricsHelper} {
		args := []string{"--include-crds"}
		if chart == cni {
			args = append(args, "--set", "originalMatchLabels=true")
		}
		want := withoutLabels(objects(t, mustRender(t, chart, args...)), helmLabels...)
		have, err := plain()
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(want, have); diff != "" {
			t.Errorf("%s (-chart +manifest): make generate\n%s", chart, diff)
		}
	}
}

// digest has the length of an image's digest, too long for a label.
const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// TestRender: the effect of values, as the difference from the default if that is small.
func TestRender(t *testing.T) {
	t.Parallel()
	usual := map[string]string{cni: mustRender(t, cni), helper: mustRender(t, helper)}
	for _, tc := range []struct {
		name, chart string
		args        []string
	}{
		{"original-match-labels", cni, []string{"--set", "originalMatchLabels=true"}},
		{"no-agent", cni, []string{"--set", "nodeAgent.enabled=false"}},
		{"ipv6", cni, []string{"--set", "env.ENABLE_IPv6=true,env.ENABLE_IPv4=false,env.ENABLE_PREFIX_DELEGATION=true,init.env.ENABLE_IPv6=true,nodeAgent.enableIpv6=true"}},
		{"policies", cni, []string{"--set", "enableNetworkPolicy=true"}},
		{"conflist", cni, []string{"--set", "cniConfig.enabled=true", "--set-string", "cniConfig.fileContents=x"}},
		{"eniconfigs", cni, []string{"--set", "eniConfig.create=true,eniConfig.subnets.a.id=subnet-1,eniConfig.subnets.b.id=subnet-2,eniConfig.subnets.b.securityGroups={sg-1,sg-2}"}},
		{"admission-policy", cni, []string{"--set", "admissionPolicy.create=true", "--kube-version", "v1.30.0-eks-036c24b"}},
		{"podmonitor", cni, []string{"--set", "podMonitor.create=true"}},
		{"podmonitor-no-agent", cni, []string{"--set", "podMonitor.create=true,nodeAgent.enabled=false"}},
		{"image-override", cni, []string{"--set", "image.override=a/b:v1.2.3,init.image.override=a/c@sha256:00,nodeAgent.image.override=a/d"}},
		{"image-override-repository", cni, []string{"--set", "image.overrideRepository=a/b,init.image.overrideRepository=a/c,nodeAgent.image.overrideRepository=a/d"}},
		{"image-global", cni, []string{"--set", "global.image.region=eu-west-1,global.image.tag=v3", "--set-string", "global.image.account=111122223333"}},
		{"image-region", cni, []string{"--set", "global.image.region=cn-north-1"}},
		{"image-tag", cni, []string{"--set", "image.tag=v3"}},
		{"image-digest", cni, []string{"--set", "image.override=a/b@" + digest}},
		{"image-tag-digest", cni, []string{"--set", "image.tag=v3@" + digest}},
		{"labels", cni, []string{"--set", "podLabels.a=b,podAnnotations.c=d"}},
		{"labels-original", cni, []string{"--set", "podLabels.a=b,originalMatchLabels=true"}},
		{"no-service-account", cni, []string{"--set", "serviceAccount.create=false"}},
		{"names", cni, []string{"--set", "nameOverride=,fullnameOverride="}},
		{"skip-idle-egress", cni, []string{"--set", "skipIdleEgress=true"}},
		{"ready-with-addresses", cni, []string{"--set", "env.CNI_READY_WITH_ADDRESSES=true"}},
		{"annotate", cni, []string{"--set", "env.ANNOTATE_POD_IP=true"}},
		{"every", cni, []string{"-f", "testdata/every.yaml"}},
		{"helper", helper, []string{"-f", "testdata/helper.yaml"}},
		{"helper-cluster-role", helper, []string{"--set", "clusterRole=true"}},
		{"helper-image", helper, []string{"--set", "image.override=a/b:c"}},
		{"helper-image-tag-digest", helper, []string{"--set", "image.tag=v3@" + digest}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			have := mustRender(t, tc.chart, tc.args...)
			objects(t, have) // fails if a key occurs twice
			if tc.name == "every" || tc.name == "helper" {
				golden.Check(t, "yaml", []byte(have))
				return
			}
			golden.Check(t, "diff", []byte(udiff.Unified("default", tc.name, usual[tc.chart], have)))
		})
	}
}

// TestRender_Lists: lists that upstream's templates accept.
func TestRender_Lists(t *testing.T) {
	t.Parallel()
	const item = "{name: an-item, key: value}"
	for _, name := range []string{"extraEnv", "imagePullSecrets", "tolerations", "extraVolumes", "extraVolumeMounts", "podMonitor.relabelings"} {
		parts := strings.Split(name, ".")
		text := "[" + item + "]"
		for _, part := range slices.Backward(parts) {
			text = fmt.Sprintf("{%s: %s}", part, text)
		}
		out := mustRender(t, cni, "--set", "podMonitor.create=true", "-f", file(t, text))
		want := map[string]int{"extraVolumeMounts": 2, "podMonitor.relabelings": 2}[name]
		if n := strings.Count(out, "name: an-item"); n != max(want, 1) {
			t.Errorf("%s: the item is rendered %d times", name, n)
		}
	}
}

// TestValues: each input that upstream's chart renders wrongly, or that no longer has an
// effect, either works or is refused with an explanation.
func TestValues(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, chart string
		values      string // content of a values file
		args        []string
		want, never string // in the rendered output
		refused     string
	}{
		{name: "account a number on the command line", chart: cni, args: []string{"--set", "image.account=123456789012"}, refused: `at '/image/account': value must be '12 digits in quotes`},
		{name: "account a number in a file", chart: cni, values: "image: {account: 123456789012}", refused: `at '/image/account': value must be '12 digits in quotes`},
		{name: "account of init a number in a file", chart: cni, values: "init: {image: {account: 123456789012}}", refused: `at '/init/image/account': value must be '12 digits in quotes`},
		{name: "account of the agent a number in a file", chart: cni, values: "nodeAgent: {image: {account: 123456789012}}", refused: `at '/nodeAgent/image/account': value must be '12 digits in quotes`},
		{name: "account --set-string", chart: cni, args: []string{"--set-string", "image.account=123456789012"}, want: `"123456789012.dkr.ecr.us-west-2.amazonaws.com/aws-vpc-cni:`},
		{name: "account in quotes", chart: cni, values: `image: {account: "123456789012"}`, want: `"123456789012.dkr.ecr.us-west-2.amazonaws.com/aws-vpc-cni:`},
		{name: "account a leading zero on the command line", chart: cni, args: []string{"--set", "image.account=012345678901"}, want: `"012345678901.dkr.ecr`},
		{name: "helper: account a number in a file", chart: helper, values: "image: {account: 877085696533}", refused: `at '/image/account': value must be '12 digits in quotes`},
		{name: "helper: USE_PROMETHEUS a boolean", chart: helper, args: []string{"--set", "env.USE_PROMETHEUS=true"}, want: "containerPort: 61681"},
		{name: "policy before 1.30", chart: cni, args: []string{"--set", "admissionPolicy.create=true", "--kube-version", "v1.29.15-eks-036c24b"}, refused: "admissionPolicy.create needs Kubernetes 1.30 or later"},
		{name: "helper: podSecurityContext", chart: helper, args: []string{"--set", "podSecurityContext.fsGroup=7"}, want: "securityContext:\n        fsGroup: 7"},
		{name: "nodeAgent: null", chart: cni, args: []string{"--set", "nodeAgent=null"}, refused: "write nodeAgent.enabled=false, not nodeAgent=null"},
		{name: "init: null", chart: cni, args: []string{"--set", "init=null"}, refused: "the init container is always there"},
		{name: "cniConfig for kubectl apply", chart: cni, args: []string{"--set", "cniConfig.enabled=true", "--show-only", "templates/conflist.yaml"}, want: "namespace: kube-system"},
		{name: "fullnameOverride of the settings with cniConfig", chart: cni, args: []string{"--set", "cniConfig.enabled=true,fullnameOverride=amazon-vpc-cni"}, refused: "with another fullnameOverride"},
		{name: "fullnameOverride of the settings alone", chart: cni, args: []string{"--set", "fullnameOverride=amazon-vpc-cni"}, want: "kind: DaemonSet\nmetadata:\n  name: amazon-vpc-cni"},
		{name: "a large number in a file", chart: cni, values: "nodeAgent: {conntrackCacheTableSize: 1048576}\nbranchENICooldown: 2000000\nenv: {AWS_VPC_K8S_CNI_CONNMARK: 16777216}", want: "--conntrack-cache-table-size=1048576", never: "e+0"},
		{name: "a number beyond what the agent takes", chart: cni, args: []string{"--set", "nodeAgent.conntrackCacheTableSize=2097152"}, refused: "at '/nodeAgent/conntrackCacheTableSize': maximum"},
		{name: "a text beyond what the agent takes", chart: cni, args: []string{"--set-string", "nodeAgent.conntrackCacheTableSize=1048577"}, refused: "at '/nodeAgent/conntrackCacheTableSize': value must be 'a number from 32768 to 1048576'"},
		{name: "a text below what the agent takes", chart: cni, args: []string{"--set-string", "nodeAgent.conntrackCacheTableSize=32767"}, refused: "a number from 32768 to 1048576"},
		{name: "a text that the agent takes", chart: cni, args: []string{"--set-string", "nodeAgent.conntrackCacheTableSize=1048576"}, want: "--conntrack-cache-table-size=1048576"},
		{name: "a port that is none", chart: cni, args: []string{"--set-string", "nodeAgent.metricsBindAddr=65536"}, refused: `value must be 'a port, such as "8162"'`},
		{name: "the last port", chart: cni, args: []string{"--set-string", "nodeAgent.metricsBindAddr=65535"}, want: "--metrics-bind-addr=:65535"},
		{name: "a port a number", chart: cni, args: []string{"--set", "nodeAgent.metricsBindAddr=8172"}, want: "--metrics-bind-addr=:8172"},
		{name: "a port with a colon", chart: cni, args: []string{"--set", "nodeAgent.metricsBindAddr=:8172"}, refused: `value must be 'a port, such as "8162"'`},
		{name: "policies without agent", chart: cni, args: []string{"--set", "enableNetworkPolicy=true,nodeAgent.enabled=false"}, refused: "without it no policy is enforced. Set nodeAgent.enabled=true"},
		{name: "policies a text without agent", chart: cni, args: []string{"--set", "nodeAgent.enabled=false", "--set-string", "enableNetworkPolicy=true"}, refused: "without it no policy is enforced"},
		{name: "one port for both", chart: cni, args: []string{"--set", "nodeAgent.metricsBindAddr=8163"}, refused: "are both 8163, and the agent does not start"},
		{name: "the daemon's port of metrics", chart: cni, args: []string{"--set", "nodeAgent.metricsBindAddr=61678"}, refused: "is 61678, a port of aws-node"},
		{name: "the daemon's port of introspection", chart: cni, args: []string{"--set-string", "nodeAgent.healthProbeBindAddr=61679"}, refused: "is 61679, a port of aws-node"},
		{name: "the daemon's port without agent", chart: cni, args: []string{"--set", "nodeAgent.enabled=false,nodeAgent.metricsBindAddr=61678"}, want: "kind: DaemonSet"},
		{name: "an agent that asks another port", chart: cni, args: []string{"--set", "enableNetworkPolicy=true,nodeAgent.image.tag=v1.4.0-eksbuild.1"}, refused: "the network policy agent of nodeAgent.image is v1.4.0, and enableNetworkPolicy is true: agents before v1.4.1"},
		{name: "an agent that the plugin does not reach", chart: cni, args: []string{"--set", "nodeAgent.image.tag=v1.2.5"}, refused: "the network policy agent of nodeAgent.image is v1.2.5: agents before v1.2.6 do not listen on the socket"},
		{name: "an old agent without policies", chart: cni, args: []string{"--set", "nodeAgent.image.tag=v1.4.0"}, want: "aws-network-policy-agent:v1.4.0"},
		{name: "the agent's tag null", chart: cni, args: []string{"--set", "nodeAgent.image.tag=null"}, want: "aws-network-policy-agent:v1.4.2"},
		{name: "an agent that asks another port, in an override", chart: cni, args: []string{"--set", "enableNetworkPolicy=true,nodeAgent.image.override=a:5000/b:v1.3.1@" + digest}, refused: "the network policy agent of nodeAgent.image is v1.3.1"},
		{name: "an override wins over an agent that asks another port", chart: cni, args: []string{"--set", "enableNetworkPolicy=true,nodeAgent.image.tag=v1.2.1,nodeAgent.image.override=a/b@" + digest}, want: "a/b@sha256"},
		{name: "the first agent that asks the socket", chart: cni, args: []string{"--set", "enableNetworkPolicy=true,nodeAgent.image.tag=v1.4.1-eksbuild.1"}, want: "aws-network-policy-agent:v1.4.1-eksbuild.1"},
		{name: "an agent of an unknown release", chart: cni, args: []string{"--set", "enableNetworkPolicy=true,nodeAgent.image.tag=mine-v1.2.1"}, want: "aws-network-policy-agent:mine-v1.2.1"},
		{name: "a name in env and extraEnv", chart: cni, values: "env: {A_NAME: first}\nextraEnv: [{name: A_NAME, value: last}]", want: "- name: A_NAME\n              value: last", never: "first"},
		{name: "a map in env", chart: cni, values: "env: {A_NAME: {b: c}}", want: `value: "{\"b\":\"c\"}"`},
		{name: "null removes a variable", chart: cni, args: []string{"--set", "env.WARM_ENI_TARGET=null"}, never: "WARM_ENI_TARGET"},
		{name: "ANNOTATE_POD_IP the text false", chart: cni, args: []string{"--set-string", "env.ANNOTATE_POD_IP=false"}, want: "verbs: [list, watch, get, patch]"},
		{name: "ANNOTATE_POD_IP the boolean false", chart: cni, args: []string{"--set", "env.ANNOTATE_POD_IP=false"}, never: "verbs: [list, watch, get, patch]"},
		{name: "a timeout in a probe", chart: cni, args: []string{"--set", "livenessProbe.timeoutSeconds=1"}, want: "timeoutSeconds: 10", never: "timeoutSeconds: 1\n"},
		{name: "no probe", chart: cni, args: []string{"--set", "livenessProbe=null"}, refused: "missing property 'livenessProbe'"},
		{name: "no probe, in a sentence", chart: cni, args: []string{"--set", "livenessProbe=null"}, refused: "the probes are always on, and null does not turn them off"},
		{name: "no other probe", chart: cni, args: []string{"--set", "readinessProbe=null"}, refused: "the probes are always on, and null does not turn them off"},
		{name: "env: null", chart: cni, args: []string{"--set", "env=null"}, refused: "null removes a variable (env.NAME=null)"},
		{name: "image: null", chart: cni, args: []string{"--set", "image=null"}, refused: "set global.image or image.override, not image=null"},
		{name: "global: null", chart: cni, args: []string{"--set", "global=null"}, refused: "Change its fields, not global or global.image to null"},
		{name: "global.image: null", chart: cni, args: []string{"--set", "global.image=null"}, refused: "Change its fields, not global or global.image to null"},
		{name: "updateStrategy: null", chart: cni, args: []string{"--set", "updateStrategy=null"}, refused: "write updateStrategy.type=OnDelete,updateStrategy.rollingUpdate=null"},
		{name: "updates by hand", chart: cni, args: []string{"--set", "updateStrategy.type=OnDelete,updateStrategy.rollingUpdate=null"}, want: "updateStrategy:\n    type: OnDelete\n"},
		{name: "podMonitor: null", chart: cni, args: []string{"--set", "podMonitor=null"}, refused: "set its create or enabled to false"},
		{name: "no affinity", chart: cni, args: []string{"--set", "affinity=null"}, never: "affinity:"},
		{name: "no resources", chart: cni, args: []string{"--set", "resources=null"}, never: "resources:\n            requests"},
		{name: "a region that nobody knows", chart: cni, args: []string{"--set", "global.image.region=xx-1"}, refused: "AWS's account in region xx-1 is not known: set nodeAgent.image.account"},
		{name: "a region that nobody knows without agent", chart: cni, args: []string{"--set", "global.image.region=xx-1,nodeAgent.enabled=false"}, want: "cnictl/aws-vpc-cni:"},
		{name: "a tag and a digest", chart: cni, args: []string{"--set", "image.override=a:5000/b:v1@" + digest}, want: "app.kubernetes.io/version: \"v1\"", never: "aws-vpc-cni-init:v1@"},
		{name: "a registry with a port, no tag", chart: cni, args: []string{"--set", "image.override=a:5000/b"}, want: "app.kubernetes.io/version: \"dev\""},
		{name: "a tag longer than a label", chart: cni, args: []string{"--set", "image.tag=" + strings.Repeat("a", 62) + "-b"}, want: "app.kubernetes.io/version: \"" + strings.Repeat("a", 62) + "\""},
		{name: "no registry", chart: cni, args: []string{"--set", "global.image.registry="}, refused: "no value says where the image aws-vpc-cni-init is: set global.image.registry"},
		{name: "no registry for the daemon", chart: cni, args: []string{"--set", "global.image.registry=,init.image.overrideRepository=a/b"}, refused: "no value says where the image aws-vpc-cni is"},
		{name: "no registry, an account", chart: cni, args: []string{"--set", "global.image.registry=", "--set-string", "global.image.account=111122223333"}, want: `"111122223333.dkr.ecr.us-west-2.amazonaws.com/aws-vpc-cni:`},
		{name: "no registry, overrides", chart: cni, args: []string{"--set", "global.image.registry=,init.image.override=a/b:c,image.overrideRepository=a/d"}, want: `"a/d:dev"`},
		{name: "helper: no registry", chart: helper, args: []string{"--set", "image.registry="}, refused: "no value says where the image cni-metrics-helper is: set image.registry"},
		{name: "helper: no registry, an account", chart: helper, args: []string{"--set", "image.registry=", "--set-string", "image.account=111122223333"}, want: `"111122223333.dkr.ecr.us-west-2.amazonaws.com/cni-metrics-helper:`},
		{name: "an account of AWS", chart: cni, args: []string{"--set-string", "image.account=602401143452"}, refused: "the account 602401143452 is AWS's, which has no image aws-vpc-cni."},
		{name: "an account of AWS in another region", chart: cni, args: []string{"--set-string", "global.image.account=877085696533"}, refused: "the account 877085696533 is AWS's, which has no image aws-vpc-cni-init."},
		{name: "an account of AWS for the agent", chart: cni, args: []string{"--set-string", "nodeAgent.image.account=877085696533"}, want: "877085696533.dkr.ecr.us-west-2.amazonaws.com/amazon/aws-network-policy-agent:"},
		{name: "the agent's variable in extraEnv without agent", chart: cni, values: "nodeAgent: {enabled: false}\nextraEnv: [{name: NETWORK_POLICY_ENFORCING_MODE, value: standard}]", refused: "Remove the variable, or set nodeAgent.enabled to true"},
		{name: "no policies in extraEnv without agent", chart: cni, values: "nodeAgent: {enabled: false}\nextraEnv: [{name: NETWORK_POLICY_ENFORCING_MODE, value: none}]", want: "value: none"},
		{name: "both address families", chart: cni, args: []string{"--set", "env.ENABLE_IPv6=true"}, refused: "are both true, with which the daemon does not start"},
		{name: "no address family", chart: cni, args: []string{"--set-string", "env.ENABLE_IPv4=false"}, refused: "are both false, with which the daemon does not start"},
		{name: "another address family in extraEnv", chart: cni, values: "env: {ENABLE_IPv6: true}\nextraEnv: [{name: ENABLE_IPv4, value: \"false\"}]", want: "ENABLE_IPv6"},
		{name: "the agent's variable in extraEnv", chart: cni, values: "extraEnv: [{name: NETWORK_POLICY_ENFORCING_MODE, value: strict}]", want: "value: strict"},
		{name: "helper: rollingUpdate alone", chart: helper, args: []string{"--set", "updateStrategy.rollingUpdate.maxSurge=1"}, want: "strategy:\n    type: Recreate\n", never: "rollingUpdate"},
		{name: "helper: rollingUpdate with its type", chart: helper, args: []string{"--set", "updateStrategy.type=RollingUpdate,updateStrategy.rollingUpdate.maxSurge=1"}, want: "rollingUpdate:\n      maxSurge: 1"},
		{name: "eniConfig without subnets", chart: cni, args: []string{"--set", "eniConfig.create=true"}, refused: ".Values.eniConfig.subnets must be specified"},
		{name: "a misspelt value", chart: cni, args: []string{"--set", "imgae.tag=v1"}, refused: "at '/imgae': value must be 'nothing: this chart has no such value"},
		{name: "helper: an account of AWS", chart: helper, args: []string{"--set-string", "image.account=800184023465"}, refused: "the account 800184023465 is AWS's, whose image is not this release."},
		{name: "helper: a misspelt value", chart: helper, args: []string{"--set", "priorityClassName=a"}, refused: "at '/priorityClassName': value must be 'nothing"},
		{name: "crd.create", chart: cni, args: []string{"--set", "crd.create=false"}, refused: "leave it out with --skip-crds"},
		{name: "cri.hostPath", chart: cni, args: []string{"--set", "cri.hostPath.path=/a"}, refused: "no socket of the container runtime"},
		{name: "probesEnabled", chart: cni, args: []string{"--set", "probesEnabled=false"}, refused: "the probes are always on"},
		{name: "a variable that is ignored", chart: cni, args: []string{"--set", "env.AWS_VPC_K8S_CNI_CONFIGURE_RPFILTER=false"}, want: "AWS_VPC_K8S_CNI_CONFIGURE_RPFILTER"},
		{name: "a boolean in quotes", chart: cni, args: []string{"--set-string", "nodeAgent.enabled=false"}, refused: "at '/nodeAgent/enabled': got string, want boolean"},
		{name: "a parent chart's condition", chart: cni, args: []string{"--set", "enabled=true,global.other=1"}, want: "kind: DaemonSet"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			args := tc.args
			if tc.values != "" {
				args = append(args, "-f", file(t, tc.values))
			}
			out, err := render(t, tc.chart, args...)
			switch {
			case tc.refused == "" && err != nil:
				t.Fatal(err)
			case tc.refused != "" && (err == nil || !strings.Contains(err.Error(), tc.refused)):
				t.Errorf("%v, want %q", err, tc.refused)
			case !strings.Contains(out, tc.want):
				t.Errorf("no %q in\n%s", tc.want, out)
			case tc.never != "" && strings.Contains(out, tc.never):
				t.Errorf("%q in\n%s", tc.never, out)
			}
		})
	}
}

// TestValues_Addon: the configurationValues of the managed add-on (its schema: aws eks
// describe-addon-configuration --addon-name vpc-cni) work unchanged as a values file of the
// chart: every property has the same name, place and type.
func TestValues_Addon(t *testing.T) {
	t.Parallel()
	const addon = "testdata/addon.json"
	rendered := mustRender(t, cni, "-f", addon)
	have := objects(t, rendered)
	var values struct{ Env, Init map[string]any }
	if err := json.Unmarshal([]byte(readFile(t, addon)), &values); err != nil {
		t.Fatal(err)
	}
	set := ofKind(have, "DaemonSet")
	for path, want := range map[string]map[string]any{"containers": values.Env, "initContainers": values.Init["env"].(map[string]any)} {
		containers, _, err := unstructured.NestedSlice(set.Object, "spec", "template", "spec", path)
		if err != nil {
			t.Fatal(err)
		}
		env := map[string]any{}
		for _, e := range containers[0].(map[string]any)["env"].([]any) {
			env[e.(map[string]any)["name"].(string)] = e.(map[string]any)["value"]
		}
		for name, value := range want {
			if env[name] != value {
				t.Errorf("%s: %s is %v, want %v", path, name, env[name], value)
			}
		}
	}
	golden.Check(t, "diff", []byte(udiff.Unified("default", "addon", mustRender(t, cni), rendered)))
}
