package causes

import (
	"os"
	"slices"
	"strings"
	"testing"

	"cnictl/testenv/situation"
)

// TestWarmWaste_Summary: the numbers match the example in the format's documentation.
func TestWarmWaste_Summary(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/config/warm-waste.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ev, err := situation.Load(text)
	if err != nil {
		t.Fatal(err)
	}
	r := Diagnose(ev, Options{})
	if len(r.Findings) != 1 {
		t.Fatalf("%d findings", len(r.Findings))
	}
	const want = "936 of the 2,043 usable addresses of subnet-a are held, but not used by pods, on the 39 nodes that could be read; 88 are free"
	f := r.Findings[0]
	if f.Summary != want || len(f.Nodes) != 39 || !f.Scope.Cluster {
		t.Errorf("%+v %q of %d nodes, want %q", f.Scope, f.Summary, len(f.Nodes), want)
	}
	missing := ""
	for _, m := range r.NotChecked {
		missing += m.Source + " " + strings.Join(m.Nodes, ",") + "\n"
	}
	if !strings.Contains(missing, "intro.enis locked\n") || !strings.Contains(missing, "k8s.wh") {
		t.Errorf("not checked:\n%s", missing)
	}
}

// TestConfigInvalid_Values: the evidence shows the values of all settings that contradict each other.
func TestConfigInvalid_Values(t *testing.T) {
	t.Parallel()
	for env, want := range map[string]string{
		"{ENABLE_IPv4: 'true', ENABLE_IPv6: 'true'}":                                     "env.ENABLE_IPv4, ENABLE_IPv6: true, true",
		"{ENABLE_IPv4: null, ENABLE_IPv6: null}":                                         "env.ENABLE_IPv4, ENABLE_IPv6: not set, not set",
		"{ENABLE_IPv4: 'false', ENABLE_IPv6: 'true', ENABLE_PREFIX_DELEGATION: 'false'}": "env.ENABLE_PREFIX_DELEGATION: false",
	} {
		ev, err := situation.Load([]byte("schemaVersion: 1\nat: 2026-11-21T14:02:11Z\nbase: healthy\nmode: cluster\nworld: {env: " + env + "}\n"))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range Diagnose(ev, Options{}).Findings {
			for _, e := range f.Evidence {
				got = append(got, e.Path+": "+e.Value)
			}
		}
		if !slices.Contains(got, want) {
			t.Errorf("%s: %q, want %q", env, got, want)
		}
	}
}
