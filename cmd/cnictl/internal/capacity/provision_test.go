package capacity

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cnictl/capacity/limits"
	"cnictl/capacity/whatif"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet/document"
	"cnictl/testenv/text/jsonschema"
)

// complete is what only the user knows, by kind: the least that makes an object complete.
var complete = map[string]string{
	"EC2NodeClass": `{"amiSelectorTerms": [{"alias": "al2023@latest"}], "role": "node", "subnetSelectorTerms": [{"tags": {"a": "b"}}],
		"securityGroupSelectorTerms": [{"tags": {"a": "b"}}]}`,
	"NodePool":   `{}`,
	"NodeConfig": `{"cluster": {"name": "c", "apiServerEndpoint": "https://c", "certificateAuthority": "Yw==", "cidr": "10.100.0.0/16"}}`,
}

// problems merges an object into the least that is complete and validates the result by the schema of
// its project (testdata/schemas, with where each is from).
func problems(t *testing.T, o object) []string {
	t.Helper()
	schema, err := os.ReadFile(filepath.Join("testdata", "schemas", o.Kind+".json"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	var spec map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(complete[o.Kind]), &spec); err != nil {
		t.Fatal(err)
	}
	maps.Copy(spec, doc["spec"].(map[string]any))
	doc["spec"] = spec
	delete(doc, "metadata") // the API server's own
	if text, err = json.Marshal(doc); err != nil {
		t.Fatal(err)
	}
	return jsonschema.Problems(t, schema, text, jsonschema.Answered)
}

func TestProvisioned_Schemas(t *testing.T) {
	t.Parallel()
	a := alike{29, []string{"m5.large", "m6i.large"}}
	for _, labels := range []map[string]string{nil, {"cnictl.dev/warm-ip-target": "2", "cnictl.dev/minimum-ip-target": "20"}} {
		for _, o := range karpenter(a, labels) {
			if p := problems(t, o); len(p) > 0 {
				t.Errorf("%s with labels %v: %q", o.Kind, labels, p)
			}
		}
		// nodeadm's definition wants objects as the values of KubeletConfiguration, but its type for them
		// (runtime.RawExtension) takes any JSON, as its examples show.
		const generated = ".spec.kubelet.config.maxPods: is of type integer, not object"
		if p := problems(t, nodeadm(a, labels)); !slices.Equal(p, []string{generated}) {
			t.Errorf("NodeConfig with labels %v: %q", labels, p)
		}
	}
	bad := karpenter(a, map[string]string{"cnictl.dev/warm-ip-target": "no label value!"})[1]
	if p := problems(t, bad); len(p) != 1 || !strings.Contains(p[0], "does not match") {
		t.Errorf("a label that is none: %q", p)
	}
}

// TestByMaxPods: a group per max-pods, each type once in it; types of nodes with several are in each.
func TestByMaxPods(t *testing.T) {
	t.Parallel()
	node := func(kind string, maxPods int) whatif.Node {
		return whatif.Node{Settings: whatif.Settings{Instance: limits.Instance{Type: kind}, MaxPods: maxPods}}
	}
	got := nodesByMaxPods([]whatif.Node{
		node("m5.xlarge", 58), node("m5.large", 29), node("c5.xlarge", 58), node("m5.xlarge", 58), node("m5.large", 20), node("x", 0),
	})
	want := []alike{{20, []string{"m5.large"}}, {29, []string{"m5.large"}}, {58, []string{"c5.xlarge", "m5.xlarge"}}}
	if !slices.EqualFunc(got, want, func(a, b alike) bool { return a.maxPods == b.maxPods && slices.Equal(a.types, b.types) }) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestPlanned_Overridden: a change of the DaemonSet says which nodes it does not reach.
func TestPlanned_Overridden(t *testing.T) {
	t.Parallel()
	p := planned{labelled: map[string]int{"WARM_IP_TARGET": 2, "MAX_ENI": 1, "no variable": 3}}
	got := p.overridden([]string{"cnictl.dev/warm-ip-target", ""}, 5)
	want := []string{"On 2 of 5 nodes the label cnictl.dev/warm-ip-target overrides WARM_IP_TARGET: change it there."}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestRecommendation_NodeGroup: labels for the named nodes' group come before the patch for all nodes.
func TestRecommendation_NodeGroup(t *testing.T) {
	t.Parallel()
	node := func(label, value string) document.NodeIPAM {
		return document.NodeIPAM{Object: &document.NodeObject{Labels: map[string]string{label: value}}}
	}
	for want, n := range map[string]document.NodeIPAM{
		"eks.amazonaws.com/nodegroup=blue": node("eks.amazonaws.com/nodegroup", "blue"),
		"karpenter.sh/nodepool=general":    node("karpenter.sh/nodepool", "general"),
		"":                                 node("karpenter.sh/nodepool", "a; reboot"),
	} {
		if got := groupOf(n); got != want {
			t.Errorf("selector %q, want %q", got, want)
		}
	}
	if got := groupOf(document.NodeIPAM{}); got != "" {
		t.Errorf("selector %q of a node that Kubernetes does not know", got)
	}
	f := &cli.Factory{Streams: &cli.Streams{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}, Env: func(string) (string, bool) { return "", false }}
	doc := document.CapacityRecommendation{Chosen: &point{}, Patch: "spec: {}\n", Effects: []string{"Restarts aws-node."},
		Labels: map[string]string{"cnictl.dev/warm-ip-target": "2", "cnictl.dev/minimum-ip-target": "20"}}
	const command = "kubectl label nodes -l eks.amazonaws.com/nodegroup=blue --overwrite cnictl.dev/minimum-ip-target=20 cnictl.dev/warm-ip-target=2"
	if lines := recommendation(f, doc); slices.Contains(lines, command) {
		t.Errorf("labels without a group: %q", lines)
	}
	doc.NodeGroup = "eks.amazonaws.com/nodegroup=blue"
	lines := recommendation(f, doc)
	patch := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, "patch daemonset") })
	if at := slices.Index(lines, command); at < 0 || patch < at {
		t.Errorf("no labels before the patch: %q", lines)
	}
}
