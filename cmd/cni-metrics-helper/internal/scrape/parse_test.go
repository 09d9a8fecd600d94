package scrape

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/cmd/cni-metrics-helper/internal/aggregate"
)

// shown is the metrics output of an ipamd, including its other collectors.
const shown = `# HELP awscni_add_ip_req_count ADDs
# TYPE awscni_add_ip_req_count counter
awscni_add_ip_req_count 20
# TYPE awscni_assigned_ip_per_cidr gauge
awscni_assigned_ip_per_cidr{cidr="10.0.0.0/28"} 3
awscni_assigned_ip_per_cidr{cidr="10.0.0.16/28"} -1
# HELP awscni_aws_api_latency_ms AWS API call latency in ms
# TYPE awscni_aws_api_latency_ms summary
awscni_aws_api_latency_ms_sum{api="CreateNetworkInterface",error="false",status="200"} 900
awscni_aws_api_latency_ms_count{api="CreateNetworkInterface",error="false",status="200"} 3
awscni_aws_api_latency_ms_sum{api="CreateNetworkInterface",error="true",status="Throttled"} 100.5
awscni_aws_api_latency_ms_count{api="CreateNetworkInterface",error="true",status="Throttled"} 1
awscni_aws_api_latency_ms_sum{api="waitForENIAndIPsAttached",error="false",status="200"} 90000
awscni_aws_api_latency_ms_count{api="waitForENIAndIPsAttached",error="false",status="200"} 3
# TYPE awscni_ipamd_error_count counter
awscni_ipamd_error_count{fn="a \"quoted\" one"} 1
awscni_ipamd_error_count{fn="b"} 2
# TYPE go_threads gauge
go_threads 12
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 1.25
# TYPE process_start_time_seconds gauge
process_start_time_seconds 1.7e+09
`

func TestParse(t *testing.T) {
	t.Parallel()
	want := aggregate.Reading{
		Values: map[string]float64{
			"awscni_add_ip_req_count": 20, "awscni_assigned_ip_per_cidr": 2, "awscni_ipamd_error_count": 3,
		},
		CPU: 1.25, Started: time.Unix(1_700_000_000, 0),
		Calls: map[string]aggregate.Calls{"CreateNetworkInterface": {Count: 4, Took: 1000.5}},
	}
	for name, text := range map[string]string{
		"as served":                    shown,
		"rubbish of other collectors":  "other{ 1 2 3 {{{\n" + shown + "# TYPE\n}\n",
		"lines of no name":             "{}\n" + shown + "{} 1\n{",
		"line ends of another system":  strings.ReplaceAll(shown, "\n", "\r\n"),
		"without the last line's end":  strings.TrimSuffix(shown, "\n"),
		"times of other nodes' clocks": strings.ReplaceAll(shown, "req_count 20", "req_count 20 1700000000000"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Parse(strings.NewReader(text))
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestParse_Quantiles(t *testing.T) {
	t.Parallel()
	got, err := Parse(strings.NewReader(`awscni_eni_max 3
# TYPE awscni_aws_api_latency_ms summary
awscni_aws_api_latency_ms{api="X",quantile="0.5"} 900
awscni_aws_api_latency_ms{api="X",quantile="0.99"} 70
awscni_aws_api_latency_ms{api="Y",quantile="0.99"} 75
awscni_aws_api_latency_ms{api="Z",quantile="0.99"} NaN
`))
	if err != nil || got.P99 != 75 || got.Values["awscni_eni_max"] != 3 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestParse_Refuses(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		text string
		want Reason
	}{
		"nothing":                   {"", Malformed},
		"a web page":                {"<html><body>404</body></html>\n", Malformed},
		"another program":           {"go_threads 3\nprocess_cpu_seconds_total 4\n", Malformed},
		"no value":                  {"awscni_eni_max\n", Malformed},
		"no number":                 {"awscni_eni_max many\n", Malformed},
		"not a number":              {"awscni_eni_max NaN\n", Malformed},
		"infinite":                  {"awscni_eni_max +Inf\n", Malformed},
		"too large":                 {"awscni_eni_max 1e300\n", Malformed},
		"too large together":        {"awscni_assigned_ip_per_cidr{cidr=\"a\"} 9e15\nawscni_assigned_ip_per_cidr{cidr=\"b\"} 9e15\n", Malformed},
		"a negative count":          {"awscni_add_ip_req_count -1\n", Malformed},
		"a gauge that is a counter": {"# TYPE awscni_eni_max counter\nawscni_eni_max 1\n", Malformed},
		"latency that is a gauge":   {"# TYPE awscni_aws_api_latency_ms gauge\nawscni_aws_api_latency_ms 1\n", Malformed},
		"calls that took less":      {"awscni_eni_max 1\n# TYPE awscni_aws_api_latency_ms summary\nawscni_aws_api_latency_ms_sum -1\nawscni_aws_api_latency_ms_count 1\n", Malformed},
		"calls that took for ever":  {"awscni_eni_max 1\n# TYPE awscni_aws_api_latency_ms summary\nawscni_aws_api_latency_ms_sum Inf\nawscni_aws_api_latency_ms_count 1\n", Malformed},
		"CPU time without sense":    {"awscni_eni_max 1\nprocess_cpu_seconds_total NaN\n", Malformed},
		"a long line":               {"awscni_eni_max 1\nx{y=\"" + strings.Repeat("z", maxLine) + "\"} 1\n", TooLarge},
		"many lines":                {strings.Repeat("awscni_assigned_ip_per_cidr{cidr=\"10.0.0.0/32\"} 1\n", 25_000), TooLarge},
		"many lines of others":      {strings.Repeat("# awscni_eni_max is not it\n", maxAnswer/26), TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Parse(strings.NewReader(row.text))
			if err == nil || reasonOf(err) != row.want {
				t.Errorf("%+v, error %v, want %s", got, err, row.want)
			}
		})
	}
}

// FuzzParse: any answer yields a reading or an error, the numbers of a reading can be
// added up, and unrelated lines change nothing.
func FuzzParse(f *testing.F) {
	f.Add(shown)
	f.Add("awscni_eni_max 3\n")
	f.Add("awscni_eni_max{a=\"b\\n\",} 0x1p-3 5\n# TYPE awscni_eni_max untyped")
	f.Add("# TYPE awscni_aws_api_latency_ms summary\nawscni_aws_api_latency_ms{quantile=\"0.99\"} 1\nawscni_aws_api_latency_ms_count 18446744073709551615\nawscni_eni_max 1\n")
	f.Add("awscni_add_ip_req_count{x=\"\xff\"} 1")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Parse(strings.NewReader(text))
		if err != nil {
			if !cmp.Equal(r, aggregate.Reading{}) {
				t.Fatalf("an error and the reading %+v", r)
			}
			var known *fault
			if !errors.As(err, &known) {
				t.Fatalf("an error without a reason: %v", err)
			}
			return
		}
		if len(r.Values) == 0 {
			t.Fatal("a reading without values")
		}
		for name, v := range r.Values {
			if math.IsNaN(v) || math.Abs(v) > maxValue {
				t.Fatalf("%s is %v", name, v)
			}
		}
		for api, c := range r.Calls {
			if !(c.Count >= 0 && c.Took >= 0 && c.Count <= maxValue && c.Took <= maxValue) {
				t.Fatalf("%q: %+v", api, c)
			}
		}
		if math.IsNaN(r.P99) || r.P99 < 0 || math.IsNaN(r.CPU) || r.CPU < 0 {
			t.Fatalf("quantile %v, CPU %v", r.P99, r.CPU)
		}
		again, err := Parse(strings.NewReader("go_threads 1\n" + text))
		if len(text) < maxAnswer/2 && (err != nil || !cmp.Equal(r, again)) {
			t.Fatalf("after a line of others: %+v, %v; before %+v", again, err, r)
		}
	})
}
