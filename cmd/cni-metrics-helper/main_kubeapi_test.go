package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"

	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/aws/fakecloudwatch"
	"cnictl/testenv/kube/kubeapi"
	"cnictl/testenv/text/golden"
)

// helperBinary is the binary that make test built (CNI_TEST_BIN), or one built here.
func helperBinary(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("CNI_TEST_BIN"); dir != "" {
		return filepath.Join(dir, "cni-metrics-helper")
	}
	bin := filepath.Join(t.TempDir(), "cni-metrics-helper")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

// node is an aws-node pod with its ipamd's metrics, at its own address.
type node struct {
	scrapes atomic.Int64
	hostile atomic.Bool // answers garbage

	adds    prometheus.Counter
	errors  *prometheus.CounterVec
	nothing prometheus.Counter
	latency *prometheus.SummaryVec
}

// addNode creates a pod that the API server can proxy to. The API server refuses to proxy
// to loopback and link-local addresses, so the sandbox's lo gets another address.
func addNode(t *testing.T, s *kubeapi.Server, name, address string, addresses float64) *node {
	t.Helper()
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	ip, err := netlink.ParseAddr(address + "/32")
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.AddrAdd(lo, ip); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := netlink.AddrDel(lo, ip); err != nil {
			t.Error(err)
		}
	})
	n := &node{
		adds:    prometheus.NewCounter(prometheus.CounterOpts{Name: "awscni_add_ip_req_count"}),
		nothing: prometheus.NewCounter(prometheus.CounterOpts{Name: "awscni_no_available_ip_addresses"}),
		errors:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "awscni_ipamd_error_count"}, []string{"fn"}),
		latency: prometheus.NewSummaryVec(prometheus.SummaryOpts{Name: "awscni_aws_api_latency_ms"}, []string{"api", "error", "status"}),
	}
	r := prometheus.NewRegistry()
	r.MustRegister(n.adds, n.nothing, n.errors, n.latency)
	for name, v := range map[string]float64{
		"awscni_assigned_ip_addresses": addresses - 1, "awscni_total_ip_addresses": addresses, "awscni_total_ipv4_prefixes": 0,
		"awscni_eni_allocated": 1, "awscni_eni_max": 3, "awscni_ip_max": 27,
	} {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name})
		g.Set(v)
		r.MustRegister(g)
	}
	n.serve(t, net.JoinHostPort(address, "61678"), promhttp.HandlerFor(r, promhttp.HandlerOpts{}))
	addPod(t, s, name, address)
	return n
}

func (n *node) serve(t *testing.T, address string, metrics http.Handler) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer n.scrapes.Add(1)
		if r.URL.Path != "/metrics" || n.hostile.Load() {
			fmt.Fprint(w, "{{{ not metrics")
			return
		}
		metrics.ServeHTTP(w, r)
	})}
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() {
		_ = server.Close()
		running.Wait()
	})
}

func addPod(t *testing.T, s *kubeapi.Server, name, address string) {
	t.Helper()
	pod := s.CreatePod(t, "kube-system", name, "node-of-"+name, func(p *corev1.Pod) {
		p.Labels = map[string]string{"k8s-app": "aws-node"}
	})
	s.SetPodStatus(t, pod, func(status *corev1.PodStatus) {
		status.Phase = corev1.PodRunning
		status.PodIP, status.PodIPs = address, []corev1.PodIP{{IP: address}}
	})
}

// helper is a running cni-metrics-helper.
type helper struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
	done   chan error

	mu  sync.Mutex
	out []byte // what it wrote to stdout; guarded by mu
}

func (h *helper) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.out = append(h.out, p...)
	return len(p), nil
}

func (h *helper) log() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return string(h.out)
}

func startHelper(t *testing.T, bin string, env []string, args ...string) *helper {
	t.Helper()
	h := &helper{done: make(chan error, 1)}
	h.cmd = exec.CommandContext(t.Context(), bin, args...)
	h.cmd.Env = append([]string{"METRIC_UPDATE_INTERVAL=1", "HOME=" + t.TempDir(), "AWS_ACCESS_KEY_ID=AKIAFAKEAWSFAKEAWS00", "AWS_SECRET_ACCESS_KEY=fake"}, env...)
	h.cmd.Stdout, h.cmd.Stderr = h, &h.stderr
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { h.done <- h.cmd.Wait() }()
	t.Cleanup(func() {
		_ = h.cmd.Process.Kill()
		if t.Failed() {
			t.Logf("stdout:\n%s\nstderr:\n%s", h.log(), h.stderr.String())
		}
	})
	return h
}

// end asks the helper to stop and returns its log.
func (h *helper) end(t *testing.T) string {
	t.Helper()
	if err := h.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := testenv.Receive(t, "its end", h.done); err != nil {
		t.Fatalf("it ended with %v", err)
	}
	return h.log()
}

func newCloudWatch(t *testing.T, region string) *fakecloudwatch.Server {
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
	return s
}

// newEC2 serves EC2 and IMDS for one instance.
func newEC2(t *testing.T, tags map[string]string) *fakeaws.Server {
	t.Helper()
	w := fakeaws.NewWorld(fakeaws.Options{Region: "us-west-2", Allow: []string{"DescribeTags"}})
	t.Cleanup(w.Close)
	vpc := w.AddVPC(netip.MustParsePrefix("10.0.0.0/16"))
	subnet, err := w.AddSubnet(fakeaws.SubnetSpec{VPCID: vpc.ID, CIDR: netip.MustParsePrefix("10.0.1.0/24")})
	if err != nil {
		t.Fatal(err)
	}
	instance, err := w.AddInstance(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: subnet.ID, Tags: tags})
	if err != nil {
		t.Fatal(err)
	}
	s, err := fakeaws.NewServer(w, instance.ID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if v := w.Violations(); len(v) > 0 {
			t.Errorf("violations: %q", v)
		}
	})
	return s
}

// polled waits until every node has been read twice more, so that one poll began and ended
// after the test's last change.
func polled(t *testing.T, nodes ...*node) {
	t.Helper()
	var from []int64
	for _, n := range nodes {
		from = append(from, n.scrapes.Load())
	}
	testenv.Eventually(t, "two more polls", func() bool {
		for i, n := range nodes {
			if n.scrapes.Load() < from[i]+2 {
				return false
			}
		}
		return true
	})
}

// TestHelper runs the binary against a real API server, EC2 and CloudWatch: a cluster whose
// figures are known, with failures everywhere.
func TestHelper(t *testing.T) {
	testenv.RequireRoot(t)
	s := kubeapi.Start(t)
	bin := helperBinary(t)
	a := addNode(t, s, "aws-node-a", "198.51.100.1", 10)
	b := addNode(t, s, "aws-node-b", "198.51.100.2", 20)
	c := addNode(t, s, "aws-node-c", "198.51.100.3", 30)
	addPod(t, s, "aws-node-nowhere", "198.51.100.9") // nothing listens
	addPod(t, s, "aws-node-loopback", "127.0.0.1")   // the API server does not proxy to it
	bad := addNode(t, s, "aws-node-bad", "198.51.100.4", 1e6)
	bad.hostile.Store(true)
	a.adds.Add(7000) // counted long ago
	b.adds.Add(10)
	b.latency.WithLabelValues("CreateNetworkInterface", "false", "200").Observe(1e6)

	cw := newCloudWatch(t, "us-west-2")
	var down atomic.Bool
	down.Store(true)
	cw.SetFault(func(int) fakecloudwatch.Fault {
		if down.Load() {
			return fakecloudwatch.Throttled
		}
		return fakecloudwatch.Fault{}
	})
	ec2 := newEC2(t, map[string]string{"Name": "node", "eks:cluster-name": "blue"})
	api := s.Proxy(t, nil)
	h := startHelper(t, bin, slices.Concat(ec2.Env(), cw.Env(), []string{"KUBECONFIG=" + api.Kubeconfig(t, "cni-metrics-helper")}), "--prometheus", "metrics")

	polled(t, a, b, c)
	a.adds.Add(20)
	b.adds.Add(50)
	polled(t, a, b, c)
	testenv.Eventually(t, "CloudWatch refuses", func() bool { return cw.Requests() >= 3 })

	// The API server is down for a while. c keeps counting, and no count is lost.
	if err := api.Refuse(); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the list fails", func() bool { return strings.Contains(h.log(), "Unable to list the aws-node pods") })
	c.adds.Add(30)
	b.nothing.Add(2)
	c.errors.WithLabelValues("x").Inc()
	if err := api.Restore(); err != nil {
		t.Fatal(err)
	}
	polled(t, a, b, c)
	b.latency.WithLabelValues("CreateNetworkInterface", "false", "200").Observe(250)
	polled(t, a, b, c)
	exposed := exposition(t)
	down.Store(false)
	log := h.end(t)

	checkLog(t, log)
	for _, want := range []string{`"cluster":"blue","source":"tag eks:cluster-name of i-`, `"region":"us-west-2"`, "unreachable: 2, malformed: 1", "such as aws-node-bad:", "Unable to publish CloudWatch metrics", `"msg":"Ended"`} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %s", want)
		}
	}
	if strings.Contains(log, "Stopped with figures") {
		t.Error("figures were left over")
	}
	golden.Check(t, "cloudwatch.txt", received(cw.Data()))
	golden.Check(t, "prometheus.txt", []byte(exposed))
	checkData(t, cw.Data())
}

// received combines what CloudWatch got: the last value of gauges, the sum of counters, and
// the highest latency.
func received(data []fakecloudwatch.Datum) []byte {
	values := map[string]float64{}
	for _, d := range data {
		line := fmt.Sprintf("%s %v %s %s", d.Namespace, d.Dimensions, d.Name, d.Unit)
		switch {
		case d.Name == "awsAPILatency":
			values[line] = max(values[line], d.Value)
		case strings.HasSuffix(d.Name, "Count") || strings.HasSuffix(d.Name, "Err") || d.Name == "noAvailableIPAddresses":
			values[line] += d.Value
		default:
			values[line] = d.Value
		}
	}
	var lines []string
	for line, v := range values {
		lines = append(lines, fmt.Sprintf("%s %v\n", line, v))
	}
	slices.Sort(lines)
	return []byte(strings.Join(lines, ""))
}

// checkData: every datum has the time of its own poll, even if sent late, and no request
// has more data than upstream's.
func checkData(t *testing.T, data []fakecloudwatch.Datum) {
	t.Helper()
	requests, seen := map[int]int{}, map[string]bool{}
	times := map[int64]bool{}
	for _, d := range data {
		requests[d.Request]++
		times[d.Time.UnixMilli()] = true
		if key := fmt.Sprint(d.Name, d.Time.UnixMilli()); seen[key] || !d.Timestamped {
			t.Errorf("%+v is there twice, or has no time", d)
		} else {
			seen[key] = true
		}
	}
	for r, n := range requests {
		if n > 20 {
			t.Errorf("request %d has %d data", r, n)
		}
	}
	if len(times) < 4 {
		t.Errorf("data of %d polls", len(times))
	}
}

// exposition reads the Prometheus metrics, without the values that differ from run to run.
func exposition(t *testing.T) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:61681/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for line := range strings.Lines(string(body)) {
		name := strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE ")
		switch {
		case strings.HasPrefix(name, "go_"), strings.HasPrefix(name, "process_"):
		case strings.HasPrefix(line, "cni_metrics_helper_polls"), strings.HasPrefix(line, "cni_metrics_helper_skipped"), strings.HasPrefix(line, "cni_metrics_helper_last"):
			name, _, _ := strings.Cut(line, "} ")
			name, _, _ = strings.Cut(name, " ")
			fmt.Fprintln(&out, strings.TrimSuffix(name, "\n"), "…")
		default:
			out.WriteString(line)
		}
	}
	return out.String()
}

// checkLog: each line has upstream's format.
func checkLog(t *testing.T, log string) {
	t.Helper()
	for line := range strings.Lines(log) {
		var in struct{ Level, TS, Caller, Msg string }
		if err := json.Unmarshal([]byte(line), &in); err != nil || in.Level == "" || in.Caller == "" || in.Msg == "" {
			t.Errorf("%v: %s", err, line)
		}
		if _, err := time.Parse("2006-01-02T15:04:05.000Z0700", in.TS); err != nil {
			t.Errorf("%v: %s", err, line)
		}
		if strings.Contains(line, "Bearer") || strings.Contains(line, "AKIA") {
			t.Errorf("a secret: %s", line)
		}
	}
}

// TestHelper_Environment: the environment sets region and cluster, so neither EC2 nor the
// metadata service is called, and it overrides the flags.
func TestHelper_Environment(t *testing.T) {
	testenv.RequireRoot(t)
	s := kubeapi.Start(t)
	bin := helperBinary(t)
	n := addNode(t, s, "aws-node-a", "198.51.100.1", 10)
	kubeconfig := "KUBECONFIG=" + s.Kubeconfig(t, "cni-metrics-helper")
	t.Run("CloudWatch alone", func(t *testing.T) {
		cw := newCloudWatch(t, "eu-central-1")
		h := startHelper(t, bin, append(cw.Env(), kubeconfig, "AWS_EC2_METADATA_DISABLED=true", "AWS_REGION=eu-central-1", "AWS_CLUSTER_ID=red", "USE_CLOUDWATCH=Yes", "AWS_VPC_K8S_CNI_LOGLEVEL=INFO",
			"CLUSTER_ENDPOINT=https://"+s.Endpoint()), "--cloudwatch=false")
		testenv.Eventually(t, "data arrive", func() bool { return len(cw.Data()) > 0 })
		log := h.end(t)
		if d := cw.Data()[0]; d.Dimensions["CLUSTER_ID"] != "red" {
			t.Errorf("%+v", d)
		}
		if strings.Contains(log, `"level":"debug"`) || strings.Contains(log, "Serving metrics") {
			t.Errorf("log:\n%s", log)
		}
	})
	t.Run("Prometheus alone", func(t *testing.T) {
		h := startHelper(t, bin, []string{kubeconfig, "AWS_EC2_METADATA_DISABLED=true", "USE_CLOUDWATCH=no", "USE_PROMETHEUS=true"})
		polled(t, n)
		if text := exposition(t); !strings.Contains(text, "awscni_total_ip_addresses 10\n") {
			t.Errorf("exposed:\n%s", text)
		}
		h.end(t)
	})
	t.Run("no interval", func(t *testing.T) {
		h := startHelper(t, bin, []string{kubeconfig, "METRIC_UPDATE_INTERVAL=soon", "USE_CLOUDWATCH=no"})
		if err := <-h.done; err == nil || !strings.Contains(h.log(), `"level":"fatal"`) || !strings.Contains(h.log(), "METRIC_UPDATE_INTERVAL") {
			t.Errorf("%v:\n%s", err, h.log())
		}
	})
	t.Run("no metadata", func(t *testing.T) {
		h := startHelper(t, bin, []string{kubeconfig, "AWS_EC2_METADATA_DISABLED=true"})
		if err := <-h.done; err == nil || !strings.Contains(h.log(), "set AWS_REGION") {
			t.Errorf("%v:\n%s", err, h.log())
		}
	})
}
