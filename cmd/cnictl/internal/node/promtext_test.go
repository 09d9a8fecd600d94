package node

import (
	"math"
	"regexp"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"cnictl/daemon/api/introspect"
)

const metricsPage = `# HELP awscni_assigned_ip_addresses The number of IP addresses assigned to pods
# TYPE awscni_assigned_ip_addresses gauge
awscni_assigned_ip_addresses 7
# TYPE awscni_aws_api_latency_ms summary
awscni_aws_api_latency_ms{api="AssignPrivateIpAddresses",error="false",status="200",quantile="0.5"} NaN
awscni_aws_api_latency_ms_sum{api="AssignPrivateIpAddresses",error="false",status="200"} 1234.5
awscni_aws_api_latency_ms_count{api="AssignPrivateIpAddresses",error="false",status="200"} 3 1795269600000
# TYPE x histogram
x_bucket{le="+Inf"} 2
no_type{path="a\"b\\c\nd"} 1e3
`

func TestParseMetrics(t *testing.T) {
	t.Parallel()
	got, err := parseMetrics(metricsPage)
	if err != nil || len(got) != 6 {
		t.Fatalf("%v: %+v", err, got)
	}
	if m := got[0]; *m.Value != 7 || m.Type != "gauge" || m.Help != "The number of IP addresses assigned to pods" {
		t.Errorf("%+v", m)
	}
	if m := got[1]; m.Value != nil || m.Labels["api"] != "AssignPrivateIpAddresses" || m.Type != "summary" {
		t.Errorf("%+v", m)
	}
	if m := got[3]; *m.Value != 3 || m.Type != "summary" {
		t.Errorf("%+v", m)
	}
	if m := got[4]; m.Type != "histogram" || m.Labels["le"] != "+Inf" {
		t.Errorf("%+v", m)
	}
	if m := got[5]; m.Type != "untyped" || m.Labels["path"] != "a\"b\\c\nd" || *m.Value != 1000 {
		t.Errorf("%+v", m)
	}
	for text, want := range map[string]string{
		"x":            "line 1: no sample",
		"a 1\nx{a":     "line 2: labels end",
		"x{a=\"":       "does not end",
		"x y":          "is not a number",
		"x 1 2 3":      "no value",
		"{a=\"b\"} 1":  "no sample",
		"<html></html": "no sample",
	} {
		if _, err := parseMetrics(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// FuzzParseMetrics holds the parser to that of Prometheus: what that one reads, and writes
// again in its own form, is read to the same values. Whatever else comes, nothing is out of
// bounds.
func FuzzParseMetrics(f *testing.F) {
	f.Add(metricsPage)
	f.Add("a{b=\"c\"} 1\na{b=\"d\"} 2\n")
	f.Add("# TYPE a counter\na 1 5\n\n#\n# HELP a x\\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseMetrics(text)
		for _, m := range got {
			if m.Name == "" || err != nil || m.Value != nil && (math.IsNaN(*m.Value) || math.IsInf(*m.Value, 0)) {
				t.Fatalf("%q gives %+v, %v", text, m, err)
			}
		}
		if braced.MatchString(text) {
			return // Prometheus' parser may panic over a sample that begins with a brace
		}
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(text))
		if err != nil {
			return
		}
		var again strings.Builder
		for _, family := range families {
			if _, err := expfmt.MetricFamilyToText(&again, family); err != nil {
				return
			}
		}
		if got, err = parseMetrics(again.String()); err != nil {
			t.Fatalf("%q: %v, Prometheus writes it", again.String(), err)
		}
		compare(t, again.String(), got, families)
	})
}

var braced = regexp.MustCompile(`(?m)^[ \t]*\{`)

// compare looks for every counter and gauge of Prometheus' among ours.
func compare(t *testing.T, text string, got []introspect.Metric, families map[string]*dto.MetricFamily) {
	t.Helper()
	for name, family := range families {
		for _, m := range family.GetMetric() {
			var want float64
			switch {
			case m.GetCounter() != nil:
				want = m.GetCounter().GetValue()
			case m.GetGauge() != nil:
				want = m.GetGauge().GetValue()
			case m.GetUntyped() != nil:
				want = m.GetUntyped().GetValue()
			default:
				continue
			}
			if !has(got, name, m.GetLabel(), want) {
				t.Fatalf("%q: no %s %v = %v in %+v", text, name, m.GetLabel(), want, got)
			}
		}
	}
}

func has(got []introspect.Metric, name string, labels []*dto.LabelPair, want float64) bool {
	for _, m := range got {
		same := m.Name == name && len(m.Labels) == len(labels)
		for _, l := range labels {
			same = same && m.Labels[l.GetName()] == l.GetValue()
		}
		switch {
		case !same:
		case m.Value == nil && (math.IsNaN(want) || math.IsInf(want, 0)):
			return true
		case m.Value != nil && *m.Value == want:
			return true
		}
	}
	return false
}
