package chart_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"cnictl/testenv/text/tour"
)

// TestInstallPage: the chart accepts the values that docs/install.md shows, and the variables in
// them are settings.
func TestInstallPage(t *testing.T) {
	settings, found := readFile(t, "../../docs/configuration.md"), 0
	for _, values := range tour.Files(readFile(t, "../../docs/install.md"), "yaml") {
		if strings.Contains(values, "kind: Kustomization") {
			continue
		}
		found++
		if _, err := render(t, cni, "--values", file(t, values)); err != nil {
			t.Errorf("%v in:\n%s", err, values)
		}
		var parsed map[string]any
		if err := yaml.Unmarshal([]byte(values), &parsed); err != nil {
			t.Fatal(err)
		}
		for _, path := range [][]string{{"env"}, {"init", "env"}} {
			env, _, _ := unstructured.NestedStringMap(parsed, path...)
			for name := range env {
				if !strings.Contains(settings, "| `"+name+"` |") {
					t.Errorf("%s is no setting of docs/configuration.md", name)
				}
			}
		}
	}
	if found < 10 {
		t.Errorf("%d blocks of values", found)
	}
}
