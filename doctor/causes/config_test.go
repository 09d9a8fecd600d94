package causes

import (
	"os"
	"strings"
	"testing"

	"cnictl/doctor/file"
)

// TestWarmWaste_Summary: the numbers match the example in the format's documentation.
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

// TestMigrateSubnets_Summary: every subnet short of addresses is named, always in the same order.
func TestMigrateSubnets_Summary(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/migrate/subnets@two.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ev, err := file.Load(text)
	if err != nil {
		t.Fatal(err)
	}
	const want = "subnets have too few free addresses: subnet-a has 5 for the 7 that the warm pools of 1 nodes lack; subnet-b has 4 for the 7 that the warm pools of 1 nodes lack"
	f := Diagnose(ev, Options{Move: &Move{}}).Findings[0]
	if f.Summary != want || f.Scope.Subnet != "subnet-a, subnet-b" || len(f.Nodes) != 2 {
		t.Errorf("%+v %q of %q, want %q", f.Scope, f.Summary, f.Nodes, want)
	}
}

// TestMigrateIAM_Severity: only an action that the new daemon needs to start is a blocker.
func TestMigrateIAM_Severity(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"iam": "error", "iam@later": "warning", "iam@subnets": "warning", "iam@back": "error", "iam@type": "error"} {
		text, err := os.ReadFile("testdata/migrate/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		ev, err := file.Load(text)
		if err != nil {
			t.Fatal(err)
		}
		if f := Diagnose(ev, Options{Move: &Move{}}).Findings[0]; f.Code != "migrate/iam" || f.Severity != want {
			t.Errorf("%s: %s %s %q, want %s", name, f.Code, f.Severity, f.Summary, want)
		}
	}
}
