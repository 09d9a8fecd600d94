package causes

import (
	"os"
	"strings"
	"testing"

	"cnictl/doctor/file"
)

// TestWarmWaste_Summary: the figures are those of the example in the format's documentation.
func TestWarmWaste_Summary(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/config/warm-waste.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ev, err := file.Load(text)
	if err != nil {
		t.Fatal(err)
	}
	r := Diagnose(ev, Options{})
	if len(r.Findings) != 1 {
		t.Fatalf("%d findings", len(r.Findings))
	}
	const want = "936 of the 2,043 usable addresses of subnet-a are held by the 39 nodes that could be read and used by no pod, 88 are free"
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
