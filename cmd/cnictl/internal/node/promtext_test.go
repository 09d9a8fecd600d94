package node

import (
	"strings"
	"testing"
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
	got, err := parseMetrics([]byte(metricsPage))
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
		"x":            "line 1: no value",
		"a 1\nx{a":     "line 2: labels end",
		"x{a=\"":       "does not end",
		"x y":          "is not a number",
		"x 1 2 3":      "no value",
		"{a=\"b\"} 1":  "no sample",
		"<html></html": "no sample",
	} {
		if _, err := parseMetrics([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
