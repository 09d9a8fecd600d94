package catalogue

import (
	"slices"
	"strings"
	"testing"
)

// found returns the codes of candidates; "-" for a symptom.
func found(candidates []Candidate) []string {
	var out []string
	for _, c := range candidates {
		if c.Entry == nil {
			out = append(out, "-")
			continue
		}
		out = append(out, c.Entry.Code)
	}
	return out
}

// TestExplain: text of logs, events and metrics is recognised as printed.
func TestExplain(t *testing.T) {
	t.Parallel()
	table := lines(t, "testdata/strings.txt")
	if len(table) < 100 {
		t.Fatalf("only %d texts", len(table))
	}
	for _, line := range table {
		text, want, _ := strings.Cut(line, "\t")
		got := Explain(text)
		for _, code := range strings.Fields(want) {
			if !slices.Contains(found(got), code) {
				t.Errorf("%s:\nwant %s, got %v", text, want, found(got))
			}
		}
		if len(got) == 0 {
			continue
		}
		if first := found(got)[0]; !slices.Contains(strings.Fields(want), first) || got[0].How != Whole || got[0].Line != 1 || got[0].Check().Text == "" {
			t.Errorf("%s:\nwant %s, got first %s by %s", text, want, first, got[0].How)
		}
	}
}

// TestExplain_EverySignature: each signature finds its own entry, even in capitals.
func TestExplain_EverySignature(t *testing.T) {
	t.Parallel()
	for e := range All() {
		for _, s := range e.Signatures {
			text := strings.ReplaceAll(s.Text, "…", " something ")
			if !ordinary(s.Text) {
				text = strings.ToUpper(text)
			}
			if got := found(Explain("before: " + text + " after")); !slices.Contains(got, e.Code) {
				t.Errorf("%s: %q gives %v", e.Code, s.Text, got)
			}
		}
	}
}

// TestExplain_Continued: what follows in an indented line belongs to the line before.
func TestExplain_Continued(t *testing.T) {
	t.Parallel()
	const text = "EC2MetadataError: failed to make EC2Metadata request\n"
	for more, want := range map[string]string{
		"\tstatus code: 401, request id: ": "instance metadata refuses a request without a token",
		"\tstatus code: 500, request id: ": "instance metadata does not answer",
	} {
		if got := Explain(text + more); len(got) == 0 || got[0].Title() != want || got[0].Line != 1 {
			t.Errorf("%q: %+v, want %q", more, got, want)
		}
	}
}

// TestExplain_FirstFix: a text is answered with the fix that it calls for, not with its cause's usual one.
func TestExplain_FirstFix(t *testing.T) {
	t.Parallel()
	for _, line := range lines(t, "testdata/first-fixes.txt") {
		text, want, _ := strings.Cut(line, "\t")
		got := Explain(strings.ReplaceAll(text, "⏎", "\n"))
		if len(got) == 0 {
			t.Errorf("%s: not recognised", text)
			continue
		}
		if fix, ok := got[0].Fix(); !ok || !strings.HasPrefix(fix.Text, want) {
			t.Errorf("%s: %q is answered with %q, want %q", text, got[0].Title(), fix.Text, want)
		}
	}
	for e := range All() {
		for _, sig := range e.Signatures {
			if fix, ok := fixNamed(sig.Fix); sig.Fix != "" && (!ok || fix == e.Fixes[0]) {
				t.Errorf("%s: %q names the fix %q, which there is not, or is the first", e.Code, sig.Text, sig.Fix)
			}
		}
	}
	for _, s := range sentences() {
		for _, fix := range s.Fixes {
			if code, number, ok := strings.Cut(fix.Text, " "); ok && fix.Command == "" && strings.Contains(code, "/") && len(number) < 3 {
				t.Errorf("%q names the fix %q, which there is not", s.Title, fix.Text)
			}
		}
	}
}

// TestExplain_Reworded: truncated and reworded texts yield the same cause first.
func TestExplain_Reworded(t *testing.T) {
	t.Parallel()
	table := lines(t, "testdata/reworded.txt")
	if len(table) < 30 {
		t.Fatalf("only %d texts", len(table))
	}
	for _, line := range table {
		text, want, _ := strings.Cut(line, "\t")
		if got := Explain(text); len(got) == 0 || found(got)[0] != want {
			t.Errorf("%s:\nwant %s, got %v", text, want, found(got))
		}
	}
}

// TestExplain_Normal: output of healthy daemons and other programs yields no candidate but what reports no
// fault.
func TestExplain_Normal(t *testing.T) {
	t.Parallel()
	for _, text := range lines(t, "testdata/normal.txt") {
		for _, c := range Explain(text) {
			if c.Normal() {
				continue
			}
			t.Errorf("%s:\ngives %s by %s of %q", text, found([]Candidate{c}), c.How, c.Signature.Text)
		}
	}
	for _, text := range []string{"", "\n\n", " ", "\x00\xff", strings.Repeat("x", 3<<20)} {
		if got := Explain(text); len(got) > 0 {
			t.Errorf("%.20q gives %v", text, found(got))
		}
	}
}

// TestExplain_Lines: each line is examined, and so is a message that spans several lines.
func TestExplain_Lines(t *testing.T) {
	t.Parallel()
	normal := lines(t, "testdata/normal.txt")
	text := strings.Join(normal, "\n") + "\napi error UnauthorizedOperation: no\n" + strings.Join(normal, "\n") + "\napi error InsufficientCidrBlocks\n"
	got := Explain(text)
	at := map[string]int{}
	for _, c := range got {
		if c.Entry == nil {
			t.Fatalf("%s, line %d: %s", c.Title(), c.Line, c.Signature.Text)
		}
		at[c.Entry.Code] = c.Line
	}
	if len(got) != 3 || at["aws/iam"] != len(normal)+1 || at["ip/prefix-fragmented"] != 2*len(normal)+2 {
		t.Errorf("%v", at)
	}
	if got := found(Explain("Error received from AddNetwork gRPC\n   call: rpc error: code =\n   Unavailable")); !slices.Contains(got, "boot/ipamd-down") {
		t.Errorf("a wrapped message gives %v", got)
	}
}

// TestExplain_DaemonCodes: a code of our daemon yields every entry that names it.
func TestExplain_DaemonCodes(t *testing.T) {
	t.Parallel()
	for e := range All() {
		for _, code := range e.Daemon {
			if got := found(Explain(`{"level":"warn","cause":"` + string(code) + `"}`)); !slices.Contains(got, e.Code) {
				t.Errorf("%s gives %v, not %s", code, got, e.Code)
			}
		}
	}
	for _, s := range Symptoms() {
		for _, code := range s.Daemon {
			if got := found(Explain("cause=" + string(code))); !slices.Equal(got, []string{"-"}) {
				t.Errorf("%s gives %v", code, got)
			}
		}
	}
}

// FuzzExplain: whatever the text, candidates are in order and unique, and their line is a line of
// the text.
func FuzzExplain(f *testing.F) {
	for _, text := range []string{"", "…", "InsufficientCidrBlo…", "a\nb\nThrottling", `{"msg":"cause=\"internal\""}`, "\xff<cut>", "50051 address already in use"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Explain(text)
		seen := map[string]bool{}
		for i, c := range got {
			if c.Entry == nil && c.Symptom == nil || c.Signature.Text == "" {
				t.Fatalf("%+v", c)
			}
			name := ""
			if c.Entry != nil {
				name = c.Entry.Code
			} else {
				name = c.Symptom.Title
			}
			if seen[name] || c.Line < 1 || c.Line > strings.Count(text, "\n")+1 || i > 0 && got[i-1].score < c.score {
				t.Fatalf("%s: line %d of %q", name, c.Line, text)
			}
			seen[name] = true
		}
	})
}

// BenchmarkIndex: the index is made once per process, in less than 20 ms.
func BenchmarkIndex(b *testing.B) {
	for b.Loop() {
		newIndex()
	}
}

// BenchmarkExplain: one long line, in less than 5 ms.
func BenchmarkExplain(b *testing.B) {
	theIndex()
	line := `E0502 08:11:45.310221    4211 pod_workers.go:1301] "Error syncing pod, skipping" err="failed to \"CreatePodSandbox\" for \"web-7d\" with CreatePodSandboxError: \"Failed to create sandbox for pod \\\"web-7d\\\": rpc error: code = Unknown desc = failed to set up networking of sandbox \\\"9c1\\\": plugin type=\\\"other\\\" name=\\\"other\\\" failed (add): add cmd: could not assign any address to the container\""`
	for b.Loop() {
		Explain(line)
	}
}
