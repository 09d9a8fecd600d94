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

// TestMigrateSubnets_Summary: every subnet short of addresses is named, always in the same order.
func TestMigrateSubnets_Summary(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		summary, subnets string
		nodes            int
	}{
		"two":        {"subnets have too few free addresses: subnet-a has 5 free, and 7 are needed to fill the warm pools of 1 node; subnet-b has 4 free, and 7 are needed to fill the warm pools of 1 node", "subnet-a, subnet-b", 2},
		"fragmented": {"subnets have too few free addresses: subnet-a has 40 free, but at most 0 whole /28 blocks, and the warm pools of 1 node need 1 block", "subnet-a", 1},
	} {
		text, err := os.ReadFile("testdata/migrate/subnets@" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		ev, err := situation.Load(text)
		if err != nil {
			t.Fatal(err)
		}
		f := Diagnose(ev, Options{Move: &Move{}}).Findings[0]
		if f.Summary != want.summary || f.Scope.Subnet != want.subnets || len(f.Nodes) != want.nodes {
			t.Errorf("%+v %q of %q, want %+v", f.Scope, f.Summary, f.Nodes, want)
		}
	}
}

// TestMigrateIAM: only an action that the new daemon needs to start is a blocker, and the policy to
// attach is that of the address family.
func TestMigrateIAM(t *testing.T) {
	t.Parallel()
	const v4, v6 = "aws-node-ipv4.json", "aws-node-ipv6.json"
	for name, want := range map[string]struct{ severity, policy string }{
		"iam": {"error", v4}, "iam@later": {"warning", v4}, "iam@subnets": {"warning", v4}, "iam@back": {"error", v4}, "iam@type": {"error", v4},
		"iam@ipv6": {"warning", v6}, "iam@ipv6-excluded": {"warning", v6}, "iam@ipv6-cards": {"warning", v6},
	} {
		text, err := os.ReadFile("testdata/migrate/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		ev, err := situation.Load(text)
		if err != nil {
			t.Fatal(err)
		}
		if f := Diagnose(ev, Options{Move: &Move{}}).Findings[0]; f.Code != "migrate/iam" || f.Severity != want.severity || len(f.Fix) != 1 || !strings.Contains(f.Fix[0].Command, want.policy) {
			t.Errorf("%s: %s %s %q, %+v, want %v", name, f.Code, f.Severity, f.Summary, f.Fix, want)
		}
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
