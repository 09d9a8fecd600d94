package report_test

import (
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/fleet/document"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/report"
)

func of(severities ...string) *document.DoctorReport {
	r := &document.DoctorReport{}
	for _, s := range severities {
		r.Findings = append(r.Findings, document.Finding{Code: "ip/subnet-exhausted", Severity: s})
	}
	return r
}

func TestResultOf(t *testing.T) {
	t.Parallel()
	checks := func(r *document.DoctorReport, passed, inconclusive int) *document.DoctorReport {
		r.Checks = document.CheckCounts{Passed: passed, Inconclusive: inconclusive}
		return r
	}
	unread := func(r *document.DoctorReport) *document.DoctorReport {
		r.Errors = []document.NodeError{{Node: "node-1", Reason: "timeout"}}
		return r
	}
	tests := map[string]struct {
		r         *document.DoctorReport
		threshold catalogue.Severity
		want      report.Result
		strict    report.Result
	}{
		"nothing":                  {of(), catalogue.Error, report.Clean, report.Clean},
		"below":                    {of("info", "warning"), catalogue.Error, report.Clean, report.Clean},
		"at":                       {of("warning", "error"), catalogue.Error, report.Found, report.Found},
		"above":                    {of("critical"), catalogue.Error, report.Found, report.Found},
		"every finding counts":     {of("info"), catalogue.Info, report.Found, report.Found},
		"some unread":              {checks(of(), 3, 1), catalogue.Error, report.Clean, report.NoEvidence},
		"some unread, an error":    {checks(of("error"), 3, 1), catalogue.Error, report.Found, report.Found},
		"a node unread":            {unread(checks(of("info"), 3, 0)), catalogue.Error, report.Partial, report.Partial},
		"a node unread, a warning": {unread(checks(of("warning"), 3, 0)), catalogue.Error, report.Clean, report.Clean},
		"a node unread, an error":  {unread(checks(of("error"), 3, 0)), catalogue.Error, report.Found, report.Found},
		"nothing read":             {checks(of(), 0, 1), catalogue.Error, report.NoEvidence, report.NoEvidence},
		"nothing read but a note":  {checks(of("info"), 0, 1), catalogue.Error, report.NoEvidence, report.NoEvidence},
		"nothing read, a warning":  {checks(of("warning"), 0, 1), catalogue.Error, report.Clean, report.NoEvidence},
	}
	for name, test := range tests {
		for strict, want := range map[bool]report.Result{false: test.want, true: test.strict} {
			if got := report.ResultOf(test.r, test.threshold, strict); got != want {
				t.Errorf("%s, strict %v: %v, want %v", name, strict, got, want)
			}
		}
	}
}

// TestFillIn: the finding's names replace the placeholders in capitals, unless a shell would
// interpret them.
func TestFillIn(t *testing.T) {
	t.Parallel()
	const command = "kubectl drain NODE; describe -n NAMESPACE POD; aws SUBNET NEW_SUBNET; env NODES=1"
	for _, test := range []struct {
		scope document.FindingScope
		want  string
	}{
		{document.FindingScope{Node: "ip-10-0-3-17.ec2.internal", Pod: "shop/cart-1", Subnet: "subnet-a"}, "kubectl drain ip-10-0-3-17.ec2.internal; describe -n shop cart-1; aws subnet-a NEW_SUBNET; env NODES=1"},
		{document.FindingScope{}, command},
		{document.FindingScope{Node: "x; rm -rf /", Pod: "$(reboot)/a b", Subnet: "--all"}, command},
	} {
		r := &document.DoctorReport{Findings: []document.Finding{{Scope: test.scope, Fix: []document.CauseFix{{Command: command}}}}}
		report.FillIn(r)
		if diff := cmp.Diff(test.want, r.Findings[0].Fix[0].Command); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", test.scope, diff)
		}
	}
}

func TestSuppress(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	finding := func() document.Finding {
		return document.Finding{Code: "ip/subnet-exhausted", Severity: "critical", Nodes: []string{"node-1", "node-2"}, Scope: document.FindingScope{Subnet: "subnet-a"}}
	}
	for text, want := range map[string][]string{
		"ip/*=subnet-a":                                   nil,
		"ip/subnet-exhausted=node-*":                      nil,
		"ip/subnet-exhausted=node-1":                      {"node-2"},
		"ip/subnet-exhausted=node-1@2026-11-21":           {"node-2"}, // until the end of the day
		"ip/subnet-exhausted=node-1@2026-11-21T14:00:01Z": {"node-2"},
		"ip/subnet-exhausted=node-1@2026-11-20":           {"node-1", "node-2"},
		"ip/subnet-exhausted=cluster":                     {"node-1", "node-2"},
		"eni/leaked=subnet-a":                             {"node-1", "node-2"},
	} {
		s, err := report.ParseSuppression(text)
		if err != nil {
			t.Fatal(err)
		}
		r := &document.DoctorReport{Findings: []document.Finding{finding()}}
		idle := report.Suppress(r, []report.Suppression{s}, now)
		var left []string
		if len(r.Findings) > 0 {
			left = r.Findings[0].Nodes
		}
		if diff := cmp.Diff(want, left); diff != "" || (len(idle) == 1) != (len(left) == 2) || (want == nil) != (len(r.Suppressed) == 1) {
			t.Errorf("%s: without effect %v, suppressed %v, nodes left (-want +got):\n%s", text, idle, r.Suppressed, diff)
		}
	}
	for _, text := range []string{"", "ip/*", "=node", "ip/*=", "no/such=node", "ip/*=node@tomorrow"} {
		if s, err := report.ParseSuppression(text); err == nil {
			t.Errorf("%q is taken as %+v", text, s)
		}
	}
}

// TestForms_Hostile: no text of a node can break out of an output form.
func TestForms_Hostile(t *testing.T) {
	t.Parallel()
	const evil = "</failure><script>|`$(x)`\n| a | b |\x1b[2J\x00 ]]>"
	r := &document.DoctorReport{Verdict: evil, Findings: []document.Finding{{
		Code: "ip/subnet-exhausted", Title: "t", Severity: "critical", Summary: evil, Nodes: []string{evil},
		Evidence: []document.FindingEvidence{{Source: "log.ipamd", Path: evil, Value: evil}},
	}}}
	for _, line := range strings.Split(string(report.Markdown(r)), "\n") {
		if strings.Contains(line, "<script>") || strings.HasPrefix(line, "| a |") || strings.Contains(line, "\x1b") {
			t.Errorf("Markdown: %q", line)
		}
	}
	junit, err := report.JUnit(r, catalogue.Error)
	if err != nil || xml.Unmarshal(junit, new(struct{})) != nil || strings.Contains(string(junit), "<script>") {
		t.Errorf("JUnit: %v\n%s", err, junit)
	}
	sarif, err := report.SARIF(r, "v1")
	if err != nil || !json.Valid(sarif) {
		t.Errorf("SARIF: %v", err)
	}
}

// TestUnreads: unread sources are grouped by reason and nodes, and described in words.
func TestUnreads(t *testing.T) {
	t.Parallel()
	missing := func(source, reason string, nodes ...string) document.MissingEvidence {
		return document.MissingEvidence{Source: source, Reason: reason, Nodes: nodes}
	}
	r := &document.DoctorReport{NotChecked: []document.MissingEvidence{
		missing("intro.enis", "refused", "a"), missing("intro.env", "refused", "a"), missing("intro.plan", "refused", "a"), missing("intro.pod", "refused", "a"),
		missing("metrics", "refused", "a"), missing("k8s.wh", "forbidden", "a", "b"), missing("k8s.kp", "forbidden", "a", "b"), missing("k8s.wh", "forbidden", "a", "b"),
		missing("odd.one", "refused", "b"), missing("log.np", "absent", "a"), missing("ec2.eni", "mode", "a"), missing("probe", "not-asked", "a"),
	}}
	var got []string
	for _, u := range report.Unreads(r) {
		got = append(got, strings.Join(u.Nodes, "+")+": "+u.Reason+": "+u.What())
	}
	want := []string{
		"a: connection refused: daemon documents (4 sources), daemon metrics",
		"a+b: permission denied: Kubernetes objects (k8s.wh, k8s.kp)",
		"b: connection refused: odd.one",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestBrief: a summary does not repeat long values of the evidence.
func TestBrief(t *testing.T) {
	t.Parallel()
	message := strings.Repeat("setupVeth failed ", 5)
	for summary, want := range map[string]string{
		"pods cannot start: " + message:                "pods cannot start",
		"it is off (" + message + "); 9 of 9 assigned": "it is off; 9 of 9 assigned",
		"the title: " + message:                        "",
		"the title: eth1: it is down":                  "eth1: it is down",
		"no address is free: 9 of 9 assigned":          "no address is free: 9 of 9 assigned",
		"pods cannot start: something else " + message: "pods cannot start: something else " + message,
	} {
		f := &document.Finding{Title: "the title", Summary: summary, Evidence: []document.FindingEvidence{{Value: message, Holds: true}, {Value: "9 of 9 assigned", Holds: true}}}
		if got := report.Brief(f); got != want {
			t.Errorf("%q: got %q, want %q", summary, got, want)
		}
	}
}

// TestSARIF: two findings of one cause share a rule, whose help has the commands.
func TestSARIF(t *testing.T) {
	t.Parallel()
	r := of("critical", "warning")
	r.Findings[0].Fix = []document.CauseFix{{Text: "Restart it.", Command: "kubectl delete pod x", Risk: "restart", SideEffects: "Pods wait."}}
	b, err := report.SARIF(r, "v1")
	if err != nil {
		t.Fatal(err)
	}
	var log struct {
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct {
					Name  string
					Rules []struct {
						ID   string
						Help struct{ Text, Markdown string }
					}
				}
			}
			Results []struct {
				RuleID, Level string
				RuleIndex     int
				Message       struct{ Text *string }
			}
		}
	}
	if err := json.Unmarshal(b, &log); err != nil || log.Version != "2.1.0" || len(log.Runs) != 1 {
		t.Fatalf("%v\n%s", err, b)
	}
	run := log.Runs[0]
	if len(run.Tool.Driver.Rules) != 1 || run.Tool.Driver.Name == "" || len(run.Results) != 2 {
		t.Fatalf("%+v", run)
	}
	for _, part := range []string{"kubectl delete pod x", "Restart it. Risk: restart. Pods wait.", "docs/doctor/ip.md#ipsubnet-exhausted"} {
		if help := run.Tool.Driver.Rules[0].Help; !strings.Contains(help.Text, part) || !strings.Contains(help.Markdown, part) {
			t.Errorf("the help lacks %q: %+v", part, help)
		}
	}
	for i, level := range []string{"error", "warning"} {
		if got := run.Results[i]; got.RuleID != "ip/subnet-exhausted" || got.RuleIndex != 0 || got.Level != level || got.Message.Text == nil {
			t.Errorf("result %d: %+v", i, got)
		}
	}
}
