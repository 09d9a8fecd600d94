package causes

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/config"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
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

// TestSettings_Labels: settings are what labels of the Node leave in effect, whether the daemon's settings
// or only its summary was read; a label that cannot be used is a finding with its own fix, and fixes of
// the DaemonSet say which labels override them.
func TestSettings_Labels(t *testing.T) {
	t.Parallel()
	load := func(edit func(r *evidence.Reading)) *Case {
		t.Helper()
		ev, err := situation.Load([]byte("schemaVersion: 1\nat: 2026-11-21T14:02:11Z\nbase: healthy\nworld: {env: {WARM_IP_TARGET: '5'}, daemon: ours}\n"))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range ev.Nodes {
			edit(n.Last())
		}
		return Cases(ev)[0]
	}
	row := func(r *evidence.Reading, name string, label, effective string, source config.Source) {
		for i := range r.Config.Content.Items {
			if x := &r.Config.Content.Items[i]; x.Name == name {
				x.Label, x.Effective, x.Source = &label, effective, string(source)
			}
		}
	}
	for name, tc := range map[string]struct {
		edit func(r *evidence.Reading)
		want [2]int // WARM_IP_TARGET, MAX_ENI
		by   string // labels in effect
	}{
		"none": {func(*evidence.Reading) {}, [2]int{5, 0}, "map[]"},
		"settings": {func(r *evidence.Reading) {
			row(r, "WARM_IP_TARGET", "8", "8", config.FromLabel)
			row(r, "MAX_ENI", "0", "", config.FromLabel)
		}, [2]int{8, 0}, "map[MAX_ENI:0 WARM_IP_TARGET:8]"},
		"unusable, never used": {func(r *evidence.Reading) { row(r, "WARM_IP_TARGET", "x", "5", config.FromEnvironment) }, [2]int{5, 0}, "map[]"},
		"unusable, as before":  {func(r *evidence.Reading) { row(r, "WARM_IP_TARGET", "x", "7", config.FromLabel) }, [2]int{7, 0}, "map[WARM_IP_TARGET:7]"},
		"summary alone": {func(r *evidence.Reading) {
			r.Config = evidence.Lacking[introspect.NodeConfig]("not requested")
			r.Summary.Content.Targets = introspect.Targets{WarmIP: new(9), MaxENI: new(2), FromLabels: []string{"WARM_IP_TARGET", "MAX_ENI", "nonsense"}}
		}, [2]int{9, 2}, "map[MAX_ENI:2 WARM_IP_TARGET:9]"},
	} {
		c := load(tc.edit)
		if got := [2]int{c.Settings.WarmIP, c.Settings.MaxENI}; got != tc.want || fmt.Sprint(c.byLabel) != tc.by {
			t.Errorf("%s: WARM_IP_TARGET and MAX_ENI are %v by labels %v, want %v by %s", name, got, c.byLabel, tc.want, tc.by)
		}
	}

	c := load(func(r *evidence.Reading) {
		row(r, "WARM_IP_TARGET", "8", "8", config.FromLabel)
		row(r, "WARM_ENI_TARGET", "x", "1", config.FromDefault)
	})
	f := c.Setting("WARM_IP_TARGET", "5", func(s config.Config) bool { return s.WarmIP == 5 })
	if f.Path != "label cnictl.dev/warm-ip-target" || f.Value != "8" || f.State != No {
		t.Errorf("fact %+v", f)
	}
	d := &diagnosis{cases: []*Case{c}}
	fix := catalogue.Fix{Command: catalogue.SetEnv + "WARM_IP_TARGET=2 MINIMUM_IP_TARGET=PODS_PER_NODE"}
	const says = " The label cnictl.dev/warm-ip-target of the Node overrides WARM_IP_TARGET there: change the label."
	if got := d.overridden(fix, []string{c.Name}); got != says {
		t.Errorf("side effect %q, want %q", got, says)
	}
	if got := d.overridden(fix, []string{"another"}) + d.overridden(catalogue.Fix{Command: "kubectl get nodes"}, []string{c.Name}); got != "" {
		t.Errorf("side effect %q of fixes that it does not concern", got)
	}
	at := slices.IndexFunc(settingsInvalid(c), func(cd Result) bool { return all(cd.Decisive...) == Yes })
	if at < 0 {
		t.Fatal("a label that cannot be used is no finding")
	}
	cd := settingsInvalid(c)[at]
	if !slices.Equal(cd.fixes, []int{3}) || cd.names["LABEL"] != "cnictl.dev/warm-eni-target" || !strings.Contains(cd.Summary, `label cnictl.dev/warm-eni-target="x" of the Node`) {
		t.Errorf("%q with fixes %v for %v", cd.Summary, cd.fixes, cd.names)
	}
}
