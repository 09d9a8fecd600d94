package catalogue

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/cause"
)

func lines(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimRight(line, "\n"); line != "" && !strings.HasPrefix(line, "# ") {
			out = append(out, line)
		}
	}
	return out
}

// TestCodes: testdata/codes.txt only grows. Codes are never renamed or reused.
func TestCodes(t *testing.T) {
	t.Parallel()
	var got []string
	seen := map[string]bool{}
	for _, g := range Groups() {
		for _, e := range g.Entries {
			got = append(got, e.Code+" "+e.Severity.String())
			if seen[e.Code] || e.Group() != g.Name {
				t.Errorf("%s is there twice, or in group %s", e.Code, g.Name)
			}
			seen[e.Code] = true
		}
	}
	if diff := cmp.Diff(lines(t, "testdata/codes.txt"), got); diff != "" {
		t.Errorf("-testdata/codes.txt +catalogue:\n%s", diff)
	}
	for _, code := range Codes() {
		if e, ok := Lookup(code); !ok || e.Code != code {
			t.Errorf("%s is not found", code)
		}
	}
	if _, ok := Lookup("ip/no-such"); ok {
		t.Error("ip/no-such is found")
	}
}

func TestEntries(t *testing.T) {
	t.Parallel()
	sources := strings.Fields(strings.Join(lines(t, "testdata/sources.txt"), " "))
	titles := map[string]string{}
	for e := range All() {
		bad := func(format string, args ...any) {
			t.Helper()
			t.Errorf("%s: "+format, append([]any{e.Code}, args...)...)
		}
		if e.Title == "" || strings.HasSuffix(e.Title, ".") || titles[e.Title] != "" {
			bad("title %q, as %s", e.Title, titles[e.Title])
		}
		titles[e.Title] = e.Code
		if e.Shows == "" || e.Check.Text == "" || e.Check.Command == "" || len(e.Fixes) == 0 || len(e.Links) == 0 || len(e.Required) == 0 {
			bad("without text, check, fixes, links or required sources")
		}
		for _, text := range []string{e.Shows, e.Check.Text} {
			if !strings.HasSuffix(text, ".") {
				bad("%q is no sentence", text)
			}
		}
		all := slices.Concat(e.Required, e.Supporting)
		if unique := slices.Compact(slices.Sorted(slices.Values(all))); len(unique) != len(all) {
			bad("a source is there twice: %v", all)
		}
		for _, s := range e.Signatures {
			if s.Text == "" || len(s.Where) == 0 {
				bad("signature %q is looked for nowhere", s.Text)
			}
			all = append(all, s.Where...)
		}
		for _, id := range all {
			if !slices.Contains(sources, id) {
				bad("%s is no source", id)
			}
		}
		if e.Ceiling == (Ceilings{}) {
			bad("no mode can find it")
		}
		for _, fix := range e.Fixes {
			if fix.Text == "" || fix.Risk >= Disruptive && fix.SideEffect == "" || fix.Risk == Restart && fix.SideEffect == "" {
				bad("fix %q: risk %s, side effect %q", fix.Text, fix.Risk, fix.SideEffect)
			}
		}
		for _, link := range e.Links {
			if !strings.HasPrefix(link, "https://") {
				bad("link %s", link)
			}
		}
		if e.Ours != "" && len(e.Daemon) > 0 {
			bad("our daemon cannot have it, but reports it as %v", e.Daemon)
		}
	}
}

// TestFixes: a fix says the same wherever it stands. Rules take fixes by their numbers, so those of a container
// that does not run follow each other everywhere, and kinds of observations have the fixes of their causes.
func TestFixes(t *testing.T) {
	t.Parallel()
	fixes := func(code string) []Fix {
		e, ok := Lookup(code)
		if !ok {
			t.Fatalf("%s does not exist", code)
		}
		return e.Fixes
	}
	said := map[[2]string]Fix{}
	stalled := fixes("net/kube-proxy")[4:]
	for e := range All() {
		for i, fix := range e.Fixes {
			key := [2]string{fix.Text, fix.Command}
			if other, known := said[key]; known && other != fix {
				t.Errorf("%s: fix %d is %+v, and elsewhere %+v", e.Code, i+1, fix, other)
			}
			said[key] = fix
			if fix == stalled[0] && (len(e.Fixes) < i+len(stalled) || !slices.Equal(e.Fixes[i:i+len(stalled)], stalled)) {
				t.Errorf("%s: after fix %d come others than in net/kube-proxy", e.Code, i+1)
			}
		}
	}
	for kind, code := range map[string]string{
		"obs/disk": "boot/disk-full", "obs/webhook": "boot/webhook", "obs/forward-dropped": "net/forward-drop",
		"obs/kube-proxy-not-ready": "net/kube-proxy", "obs/kube-proxy-rules": "net/kube-proxy", "obs/agent-not-ready": "np/agent-failing",
	} {
		if diff := cmp.Diff(fixes(code), fixes(kind)); diff != "" {
			t.Errorf("-%s +%s:\n%s", code, kind, diff)
		}
	}
	for _, part := range []string{Rolled, DeletePod} {
		if !slices.ContainsFunc(slices.Collect(maps.Values(said)), func(f Fix) bool { return f.Command == part || f.SideEffect == part }) {
			t.Errorf("no fix has %q", part)
		}
	}
}

func TestCeilings(t *testing.T) {
	t.Parallel()
	c := Ceilings{Confirmed, Probable, Suspected, None}
	for mode, want := range map[string]Confidence{"node": Confirmed, "laptop": Probable, "bundle": Suspected, "cluster": None, "moon": None} {
		if got := c.Of(mode); got != want {
			t.Errorf("%s: %s, want %s", mode, got, want)
		}
	}
}

// TestEdges: edges lead to other causes and have no cycle.
func TestEdges(t *testing.T) {
	t.Parallel()
	var visit func(code string, path []string)
	visit = func(code string, path []string) {
		if slices.Contains(path, code) {
			t.Fatalf("cycle: %v", append(path, code))
		}
		e, ok := Lookup(code)
		if !ok {
			t.Fatalf("%v leads to %s, which is no cause", path, code)
		}
		for _, next := range e.Explains {
			visit(next, append(slices.Clip(path), code))
		}
	}
	for _, code := range Codes() {
		visit(code, nil)
	}
	for root, consequence := range map[string]string{
		"aws/iam": "boot/ipamd-down", "config/invalid": "boot/ipamd-down", "cfgnet/changed-live": "boot/ipamd-down", "boot/apiserver": "boot/ipamd-down",
		"boot/socket-skew": "boot/probe-timeout", "boot/checkpoint": "boot/ipamd-down", "boot/iptables": "boot/ipamd-down", "boot/primary-link": "boot/ipamd-down",
		"boot/probe-timeout": "boot/ipamd-down", "boot/ipamd-down": "boot/cni-config", "ip/live-allocation-dropped": "eni/imds-stale",
		"eni/ec2-rejected": "ip/warm-pool-lag", "ip/subnet-exhausted": "ip/alloc-backoff", "ip/prefix-fragmented": "ip/alloc-backoff",
		"np/agent-version-skew": "np/agent-unreachable", "net/backend-mismatch": "net/snat", "sgp/instance-unsupported": "sgp/branch-capacity",
		"sgp/no-trunk-slot": "sgp/branch-capacity", "sgp/trunk-create-failed": "sgp/branch-capacity",
	} {
		e, _ := Lookup(root)
		if c, _ := Lookup(consequence); !slices.Contains(e.Explains, consequence) || !slices.Contains(c.ExplainedBy(), root) {
			t.Errorf("%s does not explain %s", root, consequence)
		}
	}
	for e := range All() {
		group := e.Group()
		if growth := group == "ip" || group == "aws" || group == "cfgnet"; growth && e.Code != "ip/warm-pool-lag" && !slices.Contains(e.Explains, "ip/warm-pool-lag") {
			t.Errorf("%s does not explain ip/warm-pool-lag", e.Code)
		}
		if always := slices.Contains([]string{"eni/leaked", "sgp/branch-alloc-failed", "cap/max-pods"}, e.Code); e.Always != always {
			t.Errorf("%s: Always is %v", e.Code, e.Always)
		}
	}
	// Both are reported for a node that has both: throttling does not keep the daemon down.
	if e, _ := Lookup("aws/throttled"); slices.Contains(e.Explains, "boot/probe-timeout") {
		t.Error("aws/throttled hides boot/probe-timeout")
	}
}

// TestDaemonCodes: every code of our daemon points to causes, or is a symptom.
func TestDaemonCodes(t *testing.T) {
	t.Parallel()
	in := map[cause.Code][]string{}
	for e := range All() {
		for _, code := range e.Daemon {
			in[code] = append(in[code], e.Code)
		}
	}
	symptom := map[cause.Code]bool{}
	for _, s := range Symptoms() {
		for _, code := range s.Daemon {
			if symptom[code] || in[code] != nil {
				t.Errorf("%s is a symptom twice, or a symptom and in %v", code, in[code])
			}
			symptom[code] = true
		}
	}
	known := lines(t, "../../../daemon/api/cause/testdata/codes.txt")
	for _, code := range known {
		if in[cause.Code(code)] == nil && !symptom[cause.Code(code)] {
			t.Errorf("%s is in no entry and is no symptom", code)
		}
	}
	if len(in)+len(symptom) != len(known) {
		t.Errorf("%d codes are named, %d there are", len(in)+len(symptom), len(known))
	}
}

func TestSymptoms(t *testing.T) {
	t.Parallel()
	for _, s := range Symptoms() {
		if s.Title == "" || s.Meaning == "" || s.Check.Text == "" || s.Check.Command == "" || len(s.Signatures)+len(s.Daemon) == 0 {
			t.Errorf("%q lacks something", s.Title)
		}
		for _, code := range s.Causes {
			group, all := strings.CutSuffix(code, "/*")
			_, known := Lookup(code)
			if all {
				known = slices.ContainsFunc(Groups(), func(g Group) bool { return g.Name == group })
			}
			if !known {
				t.Errorf("%q may come from %s, which does not exist", s.Title, code)
			}
		}
	}
}
