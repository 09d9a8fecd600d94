package root

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestK9s: deploy/k9s/plugins.yaml has the form that k9s reads, and its commands are cnictl's.
func TestK9s(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../../deploy/k9s/plugins.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Plugins map[string]struct {
			ShortCut    string   `json:"shortCut"`
			Description string   `json:"description"`
			Scopes      []string `json:"scopes"`
			Command     string   `json:"command"`
			Background  bool     `json:"background"`
			Args        []string `json:"args"`
		} `json:"plugins"`
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		t.Fatal(err)
	}
	// k9s replaces these names, and leaves $? and $_ to the shell.
	names := regexp.MustCompile(`\$(NAMESPACE|NAME|CONTEXT)\b`)
	command := regexp.MustCompile(`cnictl .* --paged`)
	keys := map[string]bool{}
	for name, p := range file.Plugins {
		if p.Command != "sh" || p.Background || len(p.Args) != 2 || p.Args[0] != "-c" || p.Description == "" || len(p.Scopes) != 1 {
			t.Errorf("%s: %+v", name, p)
			continue
		}
		checkExample(t, "cnictl", names.ReplaceAllString(command.FindString(p.Args[1]), "a"))
		if slices.Contains([]string{"nodes", "pods"}, p.Scopes[0]) == keys[p.Scopes[0]+p.ShortCut] {
			t.Errorf("%s: another plugin of %s has the key %s, or it is no list of k9s", name, p.Scopes[0], p.ShortCut)
		}
		keys[p.Scopes[0]+p.ShortCut] = true
	}
	if len(keys) != 4 {
		t.Errorf("%d plugins", len(keys))
	}
}
