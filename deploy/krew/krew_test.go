package krew

import (
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// manifest has the fields of krew's v1alpha2.
type manifest struct {
	APIVersion string
	Kind       string
	Metadata   struct{ Name string }
	Spec       struct {
		Version, ShortDescription, Description, Caveats, Homepage string
		Platforms                                                 []platform
	}
}

type platform struct {
	URI, SHA256, Bin string
	Selector         struct{ MatchLabels map[string]string }
	Files            []struct{ From, To string }
}

var (
	digest  = regexp.MustCompile(`^[0-9a-f]{64}$`)
	kebab   = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)+$`) // at least two words: a vendor's name, then what it is
	semver  = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)
	arches  = []string{"amd64", "arm64"}
	systems = []string{"linux", "darwin", "windows"}
)

// wrong returns the violations of krew's rules of names and contents.
func wrong(text []byte) (out []string) {
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	var m manifest
	if err := yaml.UnmarshalStrict(text, &m, yaml.DisallowUnknownFields); err != nil {
		return []string{err.Error()}
	}
	if m.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || m.Kind != "Plugin" {
		add("apiVersion %s, kind %s", m.APIVersion, m.Kind)
	}
	if !kebab.MatchString(m.Metadata.Name) || strings.Contains(m.Metadata.Name, "kube") {
		add("name %q", m.Metadata.Name)
	}
	if !semver.MatchString(m.Spec.Version) {
		add("version %q", m.Spec.Version)
	}
	if s := m.Spec.ShortDescription; s == "" || len(s) > 50 || strings.HasSuffix(s, ".") || strings.Contains(s, "\n") {
		add("shortDescription %q", s)
	}
	for _, text := range []string{m.Spec.Description, m.Spec.Caveats} {
		for line := range strings.Lines(text) {
			if len(strings.TrimSuffix(line, "\n")) > 80 {
				add("line of %d: %s", len(line), line)
			}
		}
	}
	if u, err := url.Parse(m.Spec.Homepage); err != nil || u.Scheme != "https" || u.Host == "" {
		add("homepage %q", m.Spec.Homepage)
	}
	seen := map[string]bool{}
	for _, p := range m.Spec.Platforms {
		name := p.Selector.MatchLabels["os"] + "_" + p.Selector.MatchLabels["arch"]
		if seen[name] || len(p.Selector.MatchLabels) != 2 || !slices.Contains(systems, p.Selector.MatchLabels["os"]) || !slices.Contains(arches, p.Selector.MatchLabels["arch"]) {
			add("platform %v", p.Selector.MatchLabels)
		}
		seen[name] = true
		if !strings.HasPrefix(p.URI, "https://") || !strings.HasSuffix(p.URI, name+".tar.gz") || !strings.Contains(p.URI, m.Spec.Version) {
			add("%s: uri %q", name, p.URI)
		}
		if !digest.MatchString(p.SHA256) {
			add("%s: sha256 %q", name, p.SHA256)
		}
		if p.Bin != "kubectl-"+strings.ReplaceAll(m.Metadata.Name, "-", "_") {
			add("%s: bin %q", name, p.Bin)
		}
	}
	if len(m.Spec.Platforms) == 0 {
		add("no platforms")
	}
	return out
}

// TestManifest: the manifest, completed as for a release, follows krew's rules, and the
// rules detect violations.
func TestManifest(t *testing.T) {
	t.Parallel()
	template, err := os.ReadFile("aws-cni.yaml")
	if err != nil {
		t.Fatal(err)
	}
	good := strings.NewReplacer("BASE", "https://example.com", "VERSION", "v1.0.0").Replace(string(template))
	good = regexp.MustCompile(`SHA256_\w+`).ReplaceAllString(good, strings.Repeat("a", 64))
	if w := wrong([]byte(good)); len(w) > 0 {
		t.Fatal(w)
	}
	for old, bad := range map[string]string{
		"name: aws-cni":              "name: cni",
		"kind: Plugin":               "kind: Plugins",
		"version: v1.0.0":            "version: 1.0.0",
		"os: linux, arch: amd64":     "os: linux, arch: arm64",
		"bin: kubectl-aws_cni":       "bin: cnictl",
		strings.Repeat("a", 64):      strings.Repeat("A", 64),
		"homepage: https:":           "homepage: http:",
		"Show the pod IP":            strings.Repeat("Show the pod IP", 3),
		"spec:\n":                    "spec:\n  colour: red\n",
		"linux_amd64.tar.gz":         "linux_amd64.rpm",
		"metadata:\n  name: aws-cni": "metadata:\n  name: kube-cni",
	} {
		if !strings.Contains(good, old) {
			t.Errorf("the manifest has no %q", old)
		}
		if w := wrong([]byte(strings.Replace(good, old, bad, 1))); len(w) == 0 {
			t.Errorf("nothing is wrong with %q", bad)
		}
	}
}
