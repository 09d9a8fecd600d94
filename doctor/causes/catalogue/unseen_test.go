package catalogue

import (
	"slices"
	"strings"
	"testing"
)

// TestExplain_Unseen: of lines as people paste them, nine in ten get the right answer, and the
// first candidates hold no wrong one. Only the tuning set served to choose thresholds.
func TestExplain_Unseen(t *testing.T) {
	t.Parallel()
	for _, set := range []string{"tuning", "held", "later", "last", "pasted", "mixed", "trial"} {
		right, wrong := 0, 0
		table := lines(t, "testdata/unseen-"+set+".txt")
		for _, line := range table {
			text, want, _ := strings.Cut(line, "\t")
			want, component, _ := strings.Cut(want, "\t")
			got := Explain(strings.ReplaceAll(text, "⏎", "\n"))
			switch {
			case len(got) == 0 && strings.Contains(want, "foreign"):
				right++
			case len(got) > 0 && component != "" && !strings.Contains(strings.ToLower(got[0].Component()), strings.ToLower(component)):
				t.Logf("%s: %q is said to be of %q, want %q:\n%s", set, got[0].Title(), got[0].Component(), component, text)
			case len(got) == 0:
				t.Logf("%s: not recognised, want %s:\n%s", set, want, text)
			case answers(got[0], strings.Fields(want)):
				right++
			default:
				wrong++
				t.Logf("%s: %s (%v) by %s of %q, want %s:\n%s", set, got[0].Title(), got[0].Causes(), got[0].How, got[0].Signature.Text, want, text)
			}
		}
		t.Logf("%s: %d of %d right, %d wrong", set, right, len(table), wrong)
		if len(table) < 30 || right*10 < len(table)*9 || wrong*30 > len(table) {
			t.Errorf("%s: %d of %d right, %d wrong", set, right, len(table), wrong)
		}
	}
}

// answers reports whether a candidate names one of the causes.
func answers(c Candidate, want []string) bool {
	if c.Normal() {
		return slices.Contains(want, "normal")
	}
	return slices.ContainsFunc(c.Causes(), func(code string) bool { return slices.Contains(want, code) })
}

// TestExplain_Foreign: lines of programs that have nothing to do with the CNI are not recognised.
func TestExplain_Foreign(t *testing.T) {
	t.Parallel()
	table := lines(t, "testdata/foreign.txt")
	if len(table) < 30 {
		t.Fatalf("only %d lines", len(table))
	}
	for _, text := range table {
		for _, c := range Explain(text) {
			t.Errorf("%s:\ngives %s by %s of %q", text, c.Title(), c.How, c.Signature.Text)
		}
	}
}

// TestSentences: each sentence says what it means, what causes it and what to do next, and finds
// itself.
func TestSentences(t *testing.T) {
	t.Parallel()
	groups := map[string]bool{}
	for _, g := range Groups() {
		groups[g.Name+"/*"] = true
	}
	seen, named := map[string]string{}, map[string]bool{}
	for e := range All() {
		for _, sig := range e.Signatures {
			seen[sig.Text] = e.Code
		}
	}
	for _, s := range sentences() {
		if s.Title == "" || s.Component == "" || !strings.HasSuffix(s.Meaning, ".") || s.Check.Text == "" || s.Check.Command == "" {
			t.Errorf("%q: without component, sentence or check: %+v", s.Title, s)
		}
		if len(s.Causes) == 0 && !s.Normal && !s.foreign || s.foreign && len(s.Causes) > 0 || len(s.Signatures)+len(s.ours) == 0 || seen[s.Title] != "" {
			t.Errorf("%q: no causes, no texts, or there twice", s.Title)
		}
		seen[s.Title] = s.Title
		for i, code := range s.Causes {
			named[code] = true
			if _, ok := Lookup(code); !ok && !groups[code] || slices.Contains(s.Causes[:i], code) {
				t.Errorf("%q: cause %s does not exist, or is there twice", s.Title, code)
			}
		}
		for _, sig := range slices.Concat(s.Signatures, s.exact) {
			if old := seen[sig.Text]; old != "" {
				t.Errorf("%q is a text of %q and of %q", sig.Text, old, s.Title)
			}
			seen[sig.Text] = s.Title
			text := strings.ReplaceAll(sig.Text, "…", " something ")
			if s.foreign {
				if p, _ := PrinterOf(text); p.Component != s.Component {
					t.Errorf("%q is of %q", sig.Text, p.Component)
				}
				continue
			}
			if !slices.ContainsFunc(Explain("before: "+text+" after"), func(c Candidate) bool {
				return c.Symptom == s || c.Entry != nil && slices.Contains(s.Causes, c.Entry.Code) || s.wraps || s.Normal
			}) {
				t.Errorf("%q does not find %q", sig.Text, s.Title)
			}
		}
	}

	if len(seen) < 500 {
		t.Errorf("only %d texts", len(seen))
	}
}

// TestOwnTexts: each text of our code belongs to a part, and each part has causes that exist.
func TestOwnTexts(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines(ownText) {
		if dir, ok := strings.CutPrefix(strings.TrimSpace(line), "@ "); ok && partOf(dir).component == "" {
			t.Errorf("%s belongs to no part", dir)
		}
	}
	for _, p := range parts {
		for code := range strings.FieldsSeq(p.causes) {
			if _, ok := Lookup(code); !ok {
				t.Errorf("%s: there is no cause %s", p.dir, code)
			}
		}
	}
	for text, want := range map[string]string{
		"EC2 operations aborted: they took longer than the shutdown allows": "aws-k8s-agent (ipamd)",
		"Proceeding without API server connectivity":                        "ipamd",
	} {
		if got := Explain(text); len(got) == 0 || got[0].Component() != want {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

// TestPrinterOf: a line that nothing recognises still names who prints such lines.
func TestPrinterOf(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"level":"debug","ts":"2026-05-02T08:11:45.310Z","caller":"ipamd/ipamd.go:1","msg":"what nobody knows"}`:   "ipamd",
		`{"level":"debug","ts":"2026-05-02T08:11:45.310Z","caller":"driver/driver.go:1","msg":"what nobody knows"}`: "aws-cni (plugin)",
		"Warning  FailedScheduling  12s  default-scheduler  0/5 nodes are available: 5 Insufficient cpu.":           "kube-scheduler",
		"0/5 nodes are available: 5 Insufficient cpu.":                                                              "kube-scheduler",
		`E0101 12:00:00.000000    1234 kubelet.go:2425] "what nobody knows"`:                                        "kubelet",
		`E0101 12:00:00.000000    1234 pod_workers.go:12] "what nobody knows"`:                                      "kubelet",
		`E0101 12:00:00.000000       1 leaderelection.go:12] "what nobody knows"`:                                   "a Kubernetes component (klog)",
		`time="2026-05-02T08:11:45Z" level=info msg="cleaning up dead shim" id=1`:                                   "containerd",
		"May  2 08:11:45 ip-10-0-0-1 containerd[611]: what nobody knows":                                            "containerd",
		"api error ValidationError: no":                                                                             "an AWS API",
		"[ 12.004512] what nobody knows":                                                                            "the kernel",
		"Error: UPGRADE FAILED: what nobody knows":                                                                  "Helm",
		"proxier.go:805] what nobody knows":                                                                         "kube-proxy",
		"nginx: [emerg] what nobody knows":                                                                          "",
		"2026-07-30 21:40:02.118 UTC [71] FATAL:  password authentication failed for user":                          "",
	} {
		if got, ok := PrinterOf(text); got.Component != want || ok != (want != "") || ok && (got.Check.Text == "" || got.Check.Command == "") {
			t.Errorf("%s: %+v, want %q", text, got, want)
		}
	}
}
