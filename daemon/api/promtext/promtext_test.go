package promtext

import (
	"maps"
	"math"
	"regexp"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

const page = `# HELP awscni_assigned_ip_addresses The number of IP addresses assigned to pods
# TYPE awscni_assigned_ip_addresses gauge
awscni_assigned_ip_addresses 7
# TYPE awscni_aws_api_latency_ms summary
awscni_aws_api_latency_ms{status="200",error="false",quantile="0.5"} NaN
awscni_aws_api_latency_ms_count{status="200",error="false"} 3 1795269600000
no_type{path="a\"b\\c\nd"} 1e3
{"quoted name","a b"="c"} 1
`

func TestSamples(t *testing.T) {
	t.Parallel()
	var got []string
	for s, err := range Samples([]byte(page), func(name string) bool { return name != "awscni_assigned_ip_addresses" }) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, s.Series())
	}
	want := []string{
		`awscni_aws_api_latency_ms{error="false",quantile="0.5",status="200"}`, `awscni_aws_api_latency_ms_count{error="false",status="200"}`,
		`no_type{path="a\"b\\c\nd"}`, `quoted name{a b="c"}`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q", got)
	}
	if f := Families([]byte(page)); f["awscni_assigned_ip_addresses"] != (Family{"gauge", "The number of IP addresses assigned to pods"}) || len(f) != 2 {
		t.Errorf("%+v", f)
	}
	for text, want := range map[string]string{
		`a{b="\x"} 1`: "escape", `a{b="c"d="e"} 1`: "labels end", `a{b="c",,} 1`: "labels end", `a{b="c"`: "labels end", `a{b="c`: "does not end", "a 1 2 3": "no value",
	} {
		for _, err := range Samples([]byte(text), nil) {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", text, err, want)
			}
		}
	}
}

// FuzzSamples compares the parser with Prometheus': whatever that one can parse and print in
// its own format gives the same values here. No other input reads out of bounds.
func FuzzSamples(f *testing.F) {
	f.Add(page)
	f.Add("a{b=\"c\"} 1\na{b=\"d\"} 2\n")
	f.Add("# TYPE a counter\na 1 5\n\n#\n# HELP a x\\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		for s, err := range Samples([]byte(text), nil) {
			if (s.Name == "") == (err == nil) {
				t.Fatalf("%q gives %+v, %v", text, s, err)
			}
			if err != nil || !plain.MatchString(s.Name) {
				continue
			}
			if again, err := ParseSeries(s.Series()); err != nil && wordly(s) || err == nil && (again.Name != s.Name || !maps.Equal(again.Labels, s.Labels)) {
				t.Fatalf("%+v is %s, which is read as %+v, %v", s, s.Series(), again, err)
			}
		}
		if braced.MatchString(text) {
			return // Prometheus' parser may panic on a sample that begins with a brace
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
		var got []Sample
		for s, err := range Samples([]byte(again.String()), nil) {
			if err != nil {
				t.Fatalf("%q: %v, Prometheus writes it", again.String(), err)
			}
			got = append(got, s)
		}
		compare(t, again.String(), got, families)
	})
}

var plain = regexp.MustCompile(`^[A-Za-z_:][A-Za-z0-9_:]*$`)

// wordly reports whether no label name needs quotes.
func wordly(s Sample) bool {
	for name := range s.Labels {
		if !plain.MatchString(name) {
			return false
		}
	}
	return true
}

var braced = regexp.MustCompile(`(?m)^[ \t]*\{`)

// compare looks for each of Prometheus' counters and gauges among ours.
func compare(t *testing.T, text string, got []Sample, families map[string]*dto.MetricFamily) {
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

func has(got []Sample, name string, labels []*dto.LabelPair, want float64) bool {
	for _, m := range got {
		same := m.Name == name && len(m.Labels) == len(labels)
		for _, l := range labels {
			same = same && m.Labels[l.GetName()] == l.GetValue()
		}
		switch {
		case !same:
		case m.Value == want, math.IsNaN(m.Value) && math.IsNaN(want):
			return true
		}
	}
	return false
}
