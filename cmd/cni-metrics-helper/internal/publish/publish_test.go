package publish

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"cnictl/cmd/cni-metrics-helper/internal/aggregate"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/aws/fakecloudwatch"
)

const region = "us-west-2"

// sender makes a sender to a fake CloudWatch, without SDK retries.
func sender(t *testing.T) (*fakecloudwatch.Server, *CloudWatch, *Queue) {
	t.Helper()
	s, err := fakecloudwatch.NewServer(region)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if v := s.Violations(); len(v) > 0 {
			t.Errorf("violations: %q", v)
		}
	})
	q := new(Queue)
	cfg := aws.Config{
		Region: region, BaseEndpoint: aws.String(s.URL), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("AKIAFAKE", "fake", ""),
	}
	return s, NewCloudWatch(cfg, "blue", "1", q), q
}

func numbered(from, to int, at time.Time) []Datum {
	var out []Datum
	for i := from; i < to; i++ {
		out = append(out, Datum{Name: fmt.Sprintf("m%d", i), Value: float64(i), At: at})
	}
	return out
}

func TestSend(t *testing.T) {
	t.Parallel()
	s, c, q := sender(t)
	at := time.Now().Add(-time.Minute).Truncate(time.Millisecond)
	q.Add(numbered(0, 45, at)...)
	if sent, err := c.Send(t.Context()); err != nil || sent != 45 || q.Len() != 0 {
		t.Fatalf("sent %d, %v; %d left", sent, err, q.Len())
	}
	got := s.Data()
	if len(got) != 45 || s.Requests() != 3 {
		t.Fatalf("%d data in %d requests", len(got), s.Requests())
	}
	for i, d := range got {
		if d.Namespace != "Kubernetes" || d.Name != fmt.Sprintf("m%d", i) || d.Value != float64(i) || d.Unit != "Count" || len(d.Dimensions) != 1 || d.Dimensions["CLUSTER_ID"] != "blue" || !d.Time.Equal(at) || d.Request != i/20+1 {
			t.Errorf("%d: %+v", i, d)
		}
	}
	if sent, err := c.Send(t.Context()); sent != 0 || err != nil || s.Requests() != 3 {
		t.Errorf("an empty queue: sent %d, %v, %d requests", sent, err, s.Requests())
	}
}

// TestSend_Again: data that were not accepted are sent again once, in order, with their
// original times.
func TestSend_Again(t *testing.T) {
	t.Parallel()
	for _, fault := range []fakecloudwatch.Fault{fakecloudwatch.Throttled, fakecloudwatch.Broken, fakecloudwatch.Denied} {
		t.Run(fault.Code, func(t *testing.T) {
			t.Parallel()
			s, c, q := sender(t)
			s.SetFault(func(n int) fakecloudwatch.Fault {
				if n == 2 {
					return fault
				}
				return fakecloudwatch.Fault{}
			})
			at := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
			q.Add(numbered(0, 50, at)...)
			if sent, err := c.Send(t.Context()); sent != 20 || err == nil || !strings.Contains(err.Error(), fault.Code) || q.Len() != 30 {
				t.Fatalf("sent %d, %v; %d left", sent, err, q.Len())
			}
			q.Add(numbered(50, 51, at)...)
			if sent, err := c.Send(t.Context()); sent != 31 || err != nil || q.Len() != 0 {
				t.Fatalf("sent %d, %v; %d left", sent, err, q.Len())
			}
			for i, d := range s.Data() {
				if d.Value != float64(i) || !d.Time.Equal(at) {
					t.Errorf("%d: %+v", i, d)
				}
			}
		})
	}
}

// TestSend_Hopeless: data that are never accepted do not block others.
func TestSend_Hopeless(t *testing.T) {
	t.Parallel()
	s, c, q := sender(t)
	s.SetFault(func(n int) fakecloudwatch.Fault {
		if n == 1 {
			return fakecloudwatch.Fault{Status: 400, Code: "InvalidParameterValue"}
		}
		return fakecloudwatch.Fault{}
	})
	q.Add(numbered(0, 30, time.Now())...)
	sent, err := c.Send(t.Context())
	if sent != 10 || err == nil || !strings.Contains(err.Error(), "drop 20 data points") || q.Len() != 0 {
		t.Errorf("sent %d, %v; %d left", sent, err, q.Len())
	}
}

func TestSend_Cancelled(t *testing.T) {
	t.Parallel()
	s, c, q := sender(t)
	s.SetFault(func(int) fakecloudwatch.Fault { return fakecloudwatch.Fault{Hang: true} })
	q.Add(numbered(0, 30, time.Now())...)
	ctx, cancel := context.WithDeadline(t.Context(), testenv.Soon())
	defer cancel()
	if sent, err := c.Send(ctx); sent != 0 || err == nil || q.Len() != 30 {
		t.Errorf("sent %d, %v; %d left", sent, err, q.Len())
	}
}

func TestQueue_Bounded(t *testing.T) {
	t.Parallel()
	var q Queue
	at := time.Unix(0, 0)
	q.Add(numbered(0, maxQueued, at)...)
	q.Add(numbered(maxQueued, maxQueued+5, at)...)
	if q.Len() != maxQueued || q.Lost() != 5 || q.Lost() != 0 {
		t.Fatalf("%d queued", q.Len())
	}
	taken := q.take(20)
	if taken[0].Value != 5 {
		t.Fatalf("the front is %v", taken[0])
	}
	q.Add(numbered(0, 30, at)...)
	q.giveBack(taken)
	if q.Len() != maxQueued || q.Lost() != 30 {
		t.Errorf("%d queued", q.Len())
	}
	if front := q.take(1); front[0].Value != 35 {
		t.Errorf("the front is %v: the oldest should have given way", front[0])
	}
}

// cloud is an EC2 with one tagged instance.
func cloud(t *testing.T, opts fakeaws.Options, tags map[string]string) (aws.Config, *fakeaws.World) {
	t.Helper()
	opts.Region = region
	w := fakeaws.NewWorld(opts)
	t.Cleanup(w.Close)
	instance := addInstance(t, w)
	if len(tags) > 0 {
		if err := w.SetTags(tags, instance); err != nil {
			t.Fatal(err)
		}
	}
	s, err := fakeaws.NewServer(w, instance)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return aws.Config{
		Region: region, BaseEndpoint: aws.String(s.EC2URL), RetryMaxAttempts: 1,
		Credentials:   credentials.NewStaticCredentialsProvider("AKIAFAKEAWSFAKEAWS00", "fake", ""),
		ConfigSources: []any{metadataAt(s.IMDSURL)},
	}, w
}

// metadataAt is a source of settings, as LoadAWS finds it in the environment.
type metadataAt string

func (m metadataAt) GetEC2IMDSEndpoint() (string, bool, error) { return string(m), true, nil }

func TestCluster(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		tags         map[string]string
		allow        []string
		want, source string
	}{
		"EKS":           {map[string]string{"eks:cluster-name": "e", "CLUSTER_ID": "c", "Name": "n"}, nil, "e", "tag eks:cluster-name"},
		"CLUSTER_ID":    {map[string]string{"CLUSTER_ID": "c", "Name": "n"}, nil, "c", "tag CLUSTER_ID"},
		"Name":          {map[string]string{"eks:cluster-name": "", "Name": "n", "other": "o"}, nil, "n", "tag Name"},
		"not a value":   {map[string]string{"eks:cluster-name": "blå", "Name": "n"}, nil, "n", "tag Name"},
		"no tag":        {nil, nil, DefaultCluster, "no tag"},
		"not permitted": {map[string]string{"Name": "n"}, []string{"DescribeInstances"}, DefaultCluster, "ec2:DescribeTags"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, w := cloud(t, fakeaws.Options{Allow: row.allow}, row.tags)
			got, source, err := Cluster(t.Context(), cfg, "")
			if err != nil || got != row.want || !strings.Contains(source, row.source) {
				t.Errorf("%q from %q, %v", got, source, err)
			}
			if v := w.Violations(); len(v) > 0 {
				t.Errorf("violations %q", v)
			}
		})
	}
	t.Run("EC2 broken", func(t *testing.T) {
		t.Parallel()
		cfg, w := cloud(t, fakeaws.Options{}, nil)
		w.SetFaults(fakeaws.FailCalls("DescribeTags", 1, 99, fakeaws.Fault{Code: "InternalError"}))
		if got, _, err := Cluster(t.Context(), cfg, ""); err == nil || !strings.Contains(err.Error(), "AWS_CLUSTER_ID") {
			t.Errorf("%q, %v", got, err)
		}
	})
}

func TestRegion(t *testing.T) {
	t.Parallel()
	cfg, _ := cloud(t, fakeaws.Options{}, nil)
	for given, want := range map[string]string{"": region, "eu-central-1": "eu-central-1", "us-gov-west-1": "us-gov-west-1"} {
		if got, err := Region(t.Context(), cfg, given); err != nil || got != want {
			t.Errorf("%q: %q, %v", given, got, err)
		}
	}
	for _, bad := range []string{"evil.example.com/", "US-WEST-2", "x"} {
		if got, err := Region(t.Context(), cfg, bad); err == nil {
			t.Errorf("%q: %q", bad, got)
		}
	}
	none := httptest.NewServer(http.NotFoundHandler())
	defer none.Close()
	cfg.ConfigSources = []any{metadataAt(none.URL)}
	if got, err := Region(t.Context(), cfg, ""); err == nil || !strings.Contains(err.Error(), "AWS_REGION") {
		t.Errorf("without metadata: %q, %v", got, err)
	}
	if _, _, err := Cluster(t.Context(), cfg, ""); err == nil || !strings.Contains(err.Error(), "AWS_CLUSTER_ID") {
		t.Errorf("without metadata: %v", err)
	}
}

func TestCheckCluster(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{"blue": true, "a b/c:d": true, "": false, "  ": false, "blå": false, "a\nb": false, strings.Repeat("x", 1024): true, strings.Repeat("x", 1025): false} {
		if err := CheckCluster(name); (err == nil) != ok {
			t.Errorf("%.20q: %v", name, err)
		}
	}
}

func TestLoadAWS_Bounds(t *testing.T) {
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range maxAnswer/1024 + 10 {
			if _, err := w.Write(make([]byte, 1024)); err != nil {
				return
			}
		}
	}))
	defer endless.Close()
	cfg, err := LoadAWS(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, endless.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := cfg.HTTPClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	n, buf := 0, make([]byte, 64<<10)
	for err == nil {
		var k int
		k, err = resp.Body.Read(buf)
		n += k
	}
	if n > maxAnswer || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("read %d bytes, then %v", n, err)
	}
}

func scrapeOf(t *testing.T, e *Exposition) string {
	t.Helper()
	w := httptest.NewRecorder()
	e.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

func figure(source string, v float64) aggregate.Figure {
	return aggregate.Figure{Metric: aggregate.Metric{Source: source}, Value: v}
}

func TestExposition(t *testing.T) {
	t.Parallel()
	e := NewExposition([]string{"timeout"})
	if text := scrapeOf(t, e); strings.Contains(text, "awscni_") || !strings.Contains(text, `cni_metrics_helper_skipped_pods_total{reason="timeout"} 0`) {
		t.Errorf("before the first poll:\n%s", text)
	}
	e.Polled([]aggregate.Figure{figure("awscni_eni_max", 9), figure("awscni_ipamd_error_count", 5), figure("awscni_add_ip_req_count", 5)}, 3, time.Unix(100, 0))
	e.Polled([]aggregate.Figure{figure("awscni_eni_max", 7), figure("awscni_add_ip_req_count", 2)}, 2, time.Unix(130, 0))
	e.Skipped("timeout")
	e.Failed()
	text := scrapeOf(t, e)
	for _, line := range []string{
		"# TYPE awscni_eni_max gauge\nawscni_eni_max 7\n", "# TYPE awscni_add_ip_req_count counter\nawscni_add_ip_req_count 7\n",
		`cni_metrics_helper_polls_total{result="ok"} 2`, `cni_metrics_helper_polls_total{result="failed"} 1`,
		`cni_metrics_helper_skipped_pods_total{reason="timeout"} 1`, "cni_metrics_helper_read_pods 2", "cni_metrics_helper_last_poll_timestamp_seconds 130",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("no %q", line)
		}
	}
	if strings.Contains(text, "ipamd_error") {
		t.Error("a counter with labels is exposed without them")
	}
}

// addInstance creates the instance that the helper runs on.
func addInstance(t *testing.T, w *fakeaws.World) string {
	t.Helper()
	vpc := w.AddVPC(netip.MustParsePrefix("10.0.0.0/16"))
	subnet, err := w.AddSubnet(fakeaws.SubnetSpec{VPCID: vpc.ID, AZ: region + "a", CIDR: netip.MustParsePrefix("10.0.1.0/24")})
	if err != nil {
		t.Fatal(err)
	}
	instance, err := w.AddInstance(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: subnet.ID})
	if err != nil {
		t.Fatal(err)
	}
	return instance.ID
}
