package fleet

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"cnictl/daemon/api/introspect"
)

// original is an upstream node's metrics: those that we read, and some that we do not.
const original = `# HELP awscni_assigned_ip_addresses The number of IP addresses assigned to pods
# TYPE awscni_assigned_ip_addresses gauge
awscni_assigned_ip_addresses 7
# HELP awscni_total_ip_addresses The total number of IP addresses
# TYPE awscni_total_ip_addresses gauge
awscni_total_ip_addresses 18
# TYPE awscni_aws_api_latency_ms summary
awscni_aws_api_latency_ms_sum{api="AssignPrivateIpAddresses",error="false",status="200"} 213
awscni_aws_api_latency_ms_count{api="AssignPrivateIpAddresses",error="false",status="200"} 1
awscni_aws_utils_error_count{error="RequestCanceled: \"x\", y\\z\n",fn="FreeENIDeleteErr"} 1
awscni_assigned_ip_per_cidr{cidr="10.0.0.9/32"} 1
awscni_eni_allocated 2
awscni_eni_max 3
awscni_ip_max 27
awscni_total_ipv4_prefixes 0
awscni_add_ip_req_count 12
awscni_no_available_ip_addresses 2
awscni_del_ip_req_count{reason="PodDeleted"} 3
awscni_del_ip_req_count{reason="SetupNSFailed"} 1
awscni_ec2api_req_count{fn="CreateNetworkInterface"} 1
awscni_ec2api_req_count{fn="AssignPrivateIpAddresses"} 4
awscni_ec2api_error_count{fn="AssignPrivateIpAddresses"} 1
awscni_build_info{goversion="go1.24.0",version="v1.20.1"} 1
go_goroutines 61
process_start_time_seconds 1.76368500012e+09
`

func TestSummaryOfMetrics_TheOriginal(t *testing.T) {
	t.Parallel()
	got, err := SummaryOfMetrics([]byte(original))
	if err != nil {
		t.Fatal(err)
	}
	started := time.UnixMilli(1763685000120).UTC()
	want := introspect.Summary{
		APIVersion: introspect.APIVersion, Kind: introspect.KindSummary, Version: "v1.20.1", StartedAt: &started,
		Cards: []introspect.CardSummary{{
			Mode: introspect.ModeSecondaryIP, Prefixes: new(0), FreePrefixes: new(0), ENIs: new(2), ENILimit: new(3), AddressLimit: new(27), Total: 18, Assigned: 7, Free: 11,
		}},
		EC2Calls: []introspect.EC2Calls{{Action: "AssignPrivateIpAddresses", Calls: 4, Errors: 1}, {Action: "CreateNetworkInterface", Calls: 1}},
		ADDs:     &introspect.RequestCounts{Total: 12, Failed: new(2)}, DELs: &introspect.RequestCounts{Total: 4},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err := got.Check(); err != nil {
		t.Errorf("the summary is not one: %v", err)
	}
}

func TestSummaryOfMetrics_Ours(t *testing.T) {
	t.Parallel()
	got, err := SummaryOfMetrics([]byte("awscni_total_ip_addresses 32\nawscni_assigned_ip_addresses 5\nawscni_cooling_ip_addresses 2\n" +
		"awscni_total_ipv4_prefixes 2\nawscni_waiting_add_requests 1\nawscni_max_pods 110\nawscni_add_ip_req_count 9\nawscni_ip_max 27\n" +
		`awscni_failed_add_count{cause="pool-dry"} 1` + "\n" + `awscni_failed_add_count{cause="internal"} 2` + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	c := got.Cards[0]
	if c.Mode != introspect.ModePrefix || c.Free != 25 || *c.Cooling != 2 || *c.Prefixes != 2 || c.FreePrefixes != nil || c.ENIs != nil || c.AddressLimit != nil || c.ENILimit != nil ||
		*got.WaitingADDs != 1 || *got.MaxPods.Value != 110 || *got.ADDs.Failed != 3 || got.DELs != nil {
		t.Errorf("%+v\n%+v", got, c)
	}
}

func TestSummaryOfMetrics_Refuses(t *testing.T) {
	t.Parallel()
	const pool = "awscni_total_ip_addresses 1\nawscni_assigned_ip_addresses 1\n"
	for name, row := range map[string]struct{ text, want string }{
		"nothing":        {"", "the addresses of the pool are missing"},
		"another's":      {"node_load1 0.3\n", "the addresses of the pool are missing"},
		"half":           {"awscni_total_ip_addresses 1\n", "the addresses of the pool are missing"},
		"no value":       {pool + "awscni_eni_max\n", `line 3: no value in "awscni_eni_max"`},
		"a word":         {pool + "awscni_eni_max many\n", `the value "many" is not a number`},
		"infinite":       {pool + "awscni_eni_max +Inf\n", "+Inf is not a count"},
		"below that":     {pool + "awscni_eni_max -Inf\n", "-Inf is not a count"},
		"no number":      {pool + "awscni_eni_max NaN\n", "NaN is not a count"},
		"too much":       {pool + "awscni_eni_max 1e300\n", "is not a count"},
		"open labels":    {pool + `awscni_ec2api_req_count{fn="x 1` + "\n", "does not end"},
		"wrong escape":   {pool + `awscni_ec2api_req_count{fn="\x"} 1` + "\n", "has the escape"},
		"no comma":       {pool + `awscni_ec2api_req_count{a="x"b="y"} 1` + "\n", "labels end"},
		"no time":        {pool + "process_start_time_seconds -4\n", "is not a time"},
		"more than that": {pool + "awscni_eni_max 1 2 3\n", "no value"},
		"larger":         {pool + strings.Repeat("#\n", MaxMetrics), "more than 4 MiB"},
		"html":           {"<html>\n", "the addresses of the pool are missing"},
		"below zero":     {pool + "awscni_eni_max -1\n", ""},
		"a timestamp":    {pool + "awscni_eni_max 1 1700000000000\n", ""},
		"a long unknown": {pool + "other" + strings.Repeat("x", 1<<20) + " 1\n", ""},
		"no name":        {"{}\n" + pool + "{} 1\n{", ""},
		"spaces":         {"  awscni_total_ip_addresses\t1\r\nawscni_assigned_ip_addresses {  } 1", ""},
	} {
		_, err := SummaryOfMetrics([]byte(row.text))
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
	}
}

// FuzzSummaryOfMetrics: the summary of any text is bounded and valid. If Prometheus's own
// parser accepts the text, both read the same.
func FuzzSummaryOfMetrics(f *testing.F) {
	f.Add([]byte(original))
	f.Add([]byte("awscni_total_ip_addresses 3\nawscni_assigned_ip_addresses{} 1 17\nawscni_ip_max -2\n"))
	f.Add([]byte("awscni_total_ip_addresses{a=\"\\\\\\\"\\n\",} 0x1p3\nawscni_assigned_ip_addresses 1e0"))
	f.Add([]byte("{}\nawscni_total_ip_addresses 3\nawscni_assigned_ip_addresses 1\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := SummaryOfMetrics(text)
		if err != nil {
			return
		}
		if wrong := s.Check(); wrong != nil {
			t.Fatalf("%v\n%+v", wrong, s)
		}
		c := s.Cards[0]
		if len(s.EC2Calls) > maxEC2Actions || c.Total >= 2*maxMetricCount || c.Free > c.Total {
			t.Fatalf("%+v", s)
		}
		families := byPrometheus(text)
		if families == nil {
			return
		}
		for name, got := range map[string]int{"awscni_total_ip_addresses": c.Total, "awscni_assigned_ip_addresses": c.Assigned} {
			if name == "awscni_total_ip_addresses" && c.Free == 0 {
				continue // the total may be raised to the used addresses
			}
			family := families[name]
			if family == nil {
				t.Fatalf("%s: we read %d, Prometheus nothing", name, got)
			}
			want := 0
			for _, m := range family.GetMetric() {
				value := m.GetUntyped().GetValue() + m.GetGauge().GetValue() + m.GetCounter().GetValue()
				if h := m.GetHistogram(); h != nil || m.GetSummary() != nil || math.IsNaN(value) {
					return
				}
				want = min(want+max(int(value), 0), maxMetricCount-1)
			}
			if got != want {
				t.Fatalf("%s: we read %d, Prometheus %d", name, got, want)
			}
		}
	})
}

// byPrometheus parses the text with Prometheus's own parser. It returns nil on an error, and
// on a panic, which some input causes, such as "{}".
func byPrometheus(text []byte) (families map[string]*dto.MetricFamily) {
	defer func() {
		if recover() != nil {
			families = nil
		}
	}()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil
	}
	return families
}
