package monitoring

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"cnictl/deploy"
	"cnictl/testenv/text/golden"
)

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestGenerated: the files to apply and to import are generated from the sources.
func TestGenerated(t *testing.T) {
	t.Parallel()
	golden.File(t, "prometheusrule.yaml", prometheusRule(read(t, "rules.yaml")))
	text, err := dashboard(read(t, "panels.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	golden.File(t, "dashboard.json", text)
}

// TestRunbooks: each alert has an entry in docs/operations.md and is linked from a group of causes
// there, and each entry and each link has its alert.
func TestRunbooks(t *testing.T) {
	t.Parallel()
	const page = "docs/operations.md"
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, For, Expr    string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(read(t, "rules.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	wanted := map[string]bool{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			wanted[r.Alert] = true
			if want := page + "#" + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want {
				t.Errorf("%s: runbook_url is %q, want %q", r.Alert, r.Annotations["runbook_url"], want)
			}
			for _, name := range []string{"summary", "description"} {
				if r.Annotations[name] == "" {
					t.Errorf("%s has no %s", r.Alert, name)
				}
			}
			if severity := r.Labels["severity"]; !slices.Contains([]string{"critical", "warning", "info"}, severity) {
				t.Errorf("%s: severity %q", r.Alert, severity)
			}
		}
	}
	text, alerts := string(read(t, "../../"+page)), maps.Clone(wanted)
	for _, m := range regexp.MustCompile(`(?m)^#+ (AwsNode\w+)$`).FindAllStringSubmatch(text, -1) {
		if !wanted[m[1]] {
			t.Errorf("%s: no alert is named %s, or it has two entries", page, m[1])
		}
		delete(wanted, m[1])
	}
	_, causes, _ := strings.Cut(text, "\n## Causes of the doctor\n")
	for name := range alerts {
		if !strings.Contains(causes, "["+name+"](#"+strings.ToLower(name)+")") {
			t.Errorf("%s: no group of causes links %s", page, name)
		}
	}
	for _, m := range regexp.MustCompile(`\(#(awsnode\w+)\)`).FindAllStringSubmatch(text, -1) {
		if !regexp.MustCompile(`(?mi)^### ` + m[1] + `$`).MatchString(text) {
			t.Errorf("%s: no entry #%s", page, m[1])
		}
	}
	for name := range wanted {
		t.Errorf("%s has no entry %s", page, name)
	}
}

// TestPodMonitor: it selects the pods of the manifest, and only ports that they have.
func TestPodMonitor(t *testing.T) {
	t.Parallel()
	var monitor struct {
		Spec struct {
			NamespaceSelector struct {
				MatchNames []string `yaml:"matchNames"`
			} `yaml:"namespaceSelector"`
			Selector struct {
				MatchLabels map[string]string `yaml:"matchLabels"`
			}
			Endpoints []struct{ Port string } `yaml:"podMetricsEndpoints"`
		}
	}
	if err := yaml.Unmarshal(read(t, "podmonitor.yaml"), &monitor); err != nil {
		t.Fatal(err)
	}
	objects, err := deploy.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if o.GetKind() != "DaemonSet" {
			continue
		}
		if !slices.Contains(monitor.Spec.NamespaceSelector.MatchNames, o.GetNamespace()) {
			t.Errorf("namespace %s is not selected", o.GetNamespace())
		}
		for key, value := range monitor.Spec.Selector.MatchLabels {
			if got, _, _ := unstructured.NestedString(o.Object, "spec", "template", "metadata", "labels", key); got != value {
				t.Errorf("label %s of the pods is %q, selected is %q", key, got, value)
			}
		}
		for _, e := range monitor.Spec.Endpoints {
			if !regexp.MustCompile(`(?m)\bname: ` + e.Port + `$`).Match(read(t, "../aws-node.yaml")) {
				t.Errorf("the pods have no port %s", e.Port)
			}
		}
		return
	}
	t.Error("the manifest has no DaemonSet")
}
