package report_test

import (
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/introspect"
	"cnictl/doctor/catalogue"
	"cnictl/doctor/report"
)

func of(severities ...string) *introspect.DoctorReport {
	r := &introspect.DoctorReport{}
	for _, s := range severities {
		r.Findings = append(r.Findings, introspect.Finding{Code: "ip/subnet-exhausted", Severity: s})
	}
	return r
}

func TestResultOf(t *testing.T) {
	t.Parallel()
	undecided := func(r *introspect.DoctorReport) *introspect.DoctorReport {
		r.Undecided = []string{"ip/subnet-exhausted"}
		return r
	}
	tests := map[string]struct {
		r         *introspect.DoctorReport
		threshold catalogue.Severity
		want      report.Result
	}{
		"nothing":                      {of(), catalogue.Error, report.Clean},
		"below":                        {of("info", "warning"), catalogue.Error, report.Clean},
		"at":                           {of("warning", "error"), catalogue.Error, report.Found},
		"above":                        {of("critical"), catalogue.Error, report.Found},
		"every finding counts":         {of("info"), catalogue.Info, report.Found},
		"undecided":                    {undecided(of()), catalogue.Error, report.NoEvidence},
		"undecided beside information": {undecided(of("info")), catalogue.Error, report.NoEvidence},
		"undecided beside a warning":   {undecided(of("warning")), catalogue.Error, report.Clean},
		"undecided beside an error":    {undecided(of("error")), catalogue.Error, report.Found},
	}
	for name, test := range tests {
		if got := report.ResultOf(test.r, test.threshold); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// TestFillIn: names of the finding take the place of capitals, unless a shell would do
// something with them.
func TestFillIn(t *testing.T) {
	t.Parallel()
	const command = "kubectl drain NODE; describe -n NAMESPACE POD; aws SUBNET NEW_SUBNET; env NODES=1"
	for _, test := range []struct {
		scope introspect.FindingScope
		want  string
	}{
		{introspect.FindingScope{Node: "ip-10-0-3-17.ec2.internal", Pod: "shop/cart-1", Subnet: "subnet-a"}, "kubectl drain ip-10-0-3-17.ec2.internal; describe -n shop cart-1; aws subnet-a NEW_SUBNET; env NODES=1"},
		{introspect.FindingScope{}, command},
		{introspect.FindingScope{Node: "x; rm -rf /", Pod: "$(reboot)/a b", Subnet: "--all"}, command},
	} {
		r := &introspect.DoctorReport{Findings: []introspect.Finding{{Scope: test.scope, Fix: []introspect.CauseFix{{Command: command}}}}}
		report.FillIn(r)
		if diff := cmp.Diff(test.want, r.Findings[0].Fix[0].Command); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", test.scope, diff)
		}
	}
}

func TestSuppress(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	finding := func() introspect.Finding {
		return introspect.Finding{Code: "ip/subnet-exhausted", Severity: "critical", Nodes: []string{"node-1", "node-2"}, Scope: introspect.FindingScope{Subnet: "subnet-a"}}
	}
	for text, want := range map[string][]string{
		"ip/*=subnet-a":                                   nil,
		"ip/subnet-exhausted=node-*":                      nil,
		"ip/subnet-exhausted=node-1":                      {"node-2"},
		"ip/subnet-exhausted=node-1@2026-11-21":           {"node-2"}, // to the end of the day
		"ip/subnet-exhausted=node-1@2026-11-21T14:00:01Z": {"node-2"},
		"ip/subnet-exhausted=node-1@2026-11-20":           {"node-1", "node-2"},
		"ip/subnet-exhausted=cluster":                     {"node-1", "node-2"},
		"eni/leaked=subnet-a":                             {"node-1", "node-2"},
	} {
		s, err := report.ParseSuppression(text)
		if err != nil {
			t.Fatal(err)
		}
		r := &introspect.DoctorReport{Findings: []introspect.Finding{finding()}}
		expired := report.Suppress(r, []report.Suppression{s}, now)
		var left []string
		if len(r.Findings) > 0 {
			left = r.Findings[0].Nodes
		}
		if diff := cmp.Diff(want, left); diff != "" || (len(expired) == 1) != strings.Contains(text, "11-20") || (want == nil) != (len(r.Suppressed) == 1) {
			t.Errorf("%s: expired %v, suppressed %v, nodes left (-want +got):\n%s", text, expired, r.Suppressed, diff)
		}
	}
	for _, text := range []string{"", "ip/*", "=node", "ip/*=", "no/such=node", "ip/*=node@tomorrow"} {
		if s, err := report.ParseSuppression(text); err == nil {
			t.Errorf("%q is taken as %+v", text, s)
		}
	}
}

// TestForms_Hostile: what a node says cannot break out of a form.
func TestForms_Hostile(t *testing.T) {
	t.Parallel()
	const evil = "</failure><script>|`$(x)`\n| a | b |\x1b[2J\x00 ]]>"
	r := &introspect.DoctorReport{Verdict: evil, Findings: []introspect.Finding{{
		Code: "ip/subnet-exhausted", Title: "t", Severity: "critical", Summary: evil, Nodes: []string{evil},
		Evidence: []introspect.FindingEvidence{{Source: "log.ipamd", Path: evil, Value: evil}},
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
