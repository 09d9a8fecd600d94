package metrics

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
)

// exercise makes everything happen once, so that every family has a series.
func exercise(m *Metrics) {
	m.SetPool(func() PoolGauges {
		return PoolGauges{
			ENIs: 2, MaxENIs: 3, MaxIPs: 27, Total: 18, Assigned: 16, Cooling: 1, IPv4Prefixes: 0,
			ByCIDR:   []CIDRGauge{{"10.0.0.11/32", 1}, {"10.0.0.18/32", 0}},
			ByENI:    []ENIGauge{{"eni-1", 8}, {"eni-2", 8}},
			Backoffs: []BackoffGauge{{"attach", string(cause.EC2Throttled), 1500 * time.Millisecond}},
			MaxPods:  29, PodCapacity: 35, Unplaced: 1, Subnets: []SubnetGauge{{"subnet-1", 4000}},
			Reconciled: time.Unix(1_787_000_000, 0), Branches: &BranchGauge{Trunk: true, Used: 3, Max: 9},
		}
	})
	m.AddRequest()
	m.HostStateRepaired("pod-rule", 2)
	m.FlowsDeleted(12, nil)
	m.AddWaited(250 * time.Millisecond)
	m.AddFailed(cause.SubnetExhausted)
	m.NoAddress()
	m.Waiting(3)
	m.DelRequest("PodDeleted")
	m.EC2Call("CreateNetworkInterface", 1500*time.Microsecond, "", nil)
	m.EC2Call("CreateNetworkInterface", time.Millisecond, "InsufficientFreeAddressesInSubnet", errors.New("no"))
	m.APILatency(APIWaitForENI, 5*time.Millisecond, "", nil)
	m.AWSUtilsError(FnFreeENIDelete, "InvalidParameterValue")
	m.InternalError(FnDecreaseFreeENI)
	m.Reconciled(FnENIReconcileAdd)
	m.PodENIError(FnNodeInit)
	m.ForceRemovedENI(2)
	m.Started(282*time.Millisecond, true, "")
	m.NodeInitialized(169*time.Millisecond, nil)
	m.Action(FnIncreasePool)()
	m.ConnmarkBackend("nftables")
	m.ConnmarkReconcile(nil)
	m.PlanAction("attach", "waiting")
	m.AgentCall(CallEnforce, ResultSuccess)
	m.DeletionsWaiting(1)
}

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Fatalf("status %d, %s\n%s", w.Code, w.Header(), w.Body)
	}
	return w.Body.String()
}

// family is what users rely on.
type family struct{ Name, Type, Help, Labels string }

func families(t *testing.T, text io.Reader) map[string]family {
	t.Helper()
	p := expfmt.NewTextParser(model.LegacyValidation)
	parsed, err := p.TextToMetricFamilies(text)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]family{}
	for name, f := range parsed {
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue
		}
		labels := map[string]bool{}
		for _, s := range f.Metric {
			var names []string
			for _, l := range s.Label {
				names = append(names, l.GetName())
			}
			slices.Sort(names)
			labels[strings.Join(names, ",")] = true
		}
		all[name] = family{name, f.GetType().String(), f.GetHelp(), strings.Join(slices.Sorted(maps.Keys(labels)), " or ")}
	}
	return all
}

// What upstream was recorded to expose exists with the same name, type, help and labels; what
// it exposes only on failures is in testdata/original.tsv; the rest is ours and listed here.
func TestFamilies_AsRecorded(t *testing.T) {
	t.Parallel()
	file, err := os.Open("testdata/recorded/two-enis.exhausted.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	want := families(t, file)
	if len(want) != 23 {
		t.Fatalf("%d families recorded", len(want))
	}
	for _, f := range []family{
		{"awscni_ipamd_error_count", "COUNTER", "The number of errors encountered in ipamd", "fn"},
		{"awscni_reconcile_count", "COUNTER", "The number of times ipamd reconciles on ENIs and IP addresses", "fn"},
		{"awscni_pod_eni_error_count", "COUNTER", "The number of errors of pod ENI support", "fn"},
		{"awscni_aws_api_error_count", "COUNTER", "The number of times AWS API returns an error", "api,error"},
		{"awscni_aws_utils_error_count", "COUNTER", "The number of errors of operations made of several AWS calls, by code", "error,fn"},
		{"awscni_ec2api_error_count", "COUNTER", "The number of failed requests to EC2 APIs by CNI", "fn"},

		{"awscni_cooling_ip_addresses", "GAUGE", "The number of IP addresses in cooldown", ""},
		{"awscni_quarantined_ip_addresses", "GAUGE", "The number of pods whose address is not on a known ENI; nothing is released until it is", ""},
		{"awscni_max_pods", "GAUGE", "The number of pods that the node may run", ""},
		{"awscni_pod_capacity", "GAUGE", "The number of pods that the addresses and branch ENIs of the node can serve, host network included", ""},
		{"awscni_last_reconcile_timestamp_seconds", "GAUGE", "The Unix time at which the pool was last compared with what is attached", ""},
		{"awscni_trunk_eni", "GAUGE", "Whether the trunk ENI for security groups for pods is attached", ""},
		{"awscni_branch_eni", "GAUGE", "The number of branch ENIs in use by pods", ""},
		{"awscni_branch_eni_max", "GAUGE", "The number of branch ENIs that the instance type can have", ""},
		{"awscni_subnet_free_ip_addresses", "GAUGE", "The number of free IP addresses that EC2 reported for a subnet", "subnet"},
		{"awscni_add_ip_wait_seconds", "HISTOGRAM", "The time from an add IP address request to its address", ""},
		{"awscni_failed_add_count", "COUNTER", "The number of add IP address requests that failed, by cause", "cause"},
		{"awscni_waiting_add_requests", "GAUGE", "The number of add IP address requests that wait for the pool to grow", ""},
		{"awscni_plan_actions_total", "COUNTER", "The number of planned changes of the pool that were started, by action and reason", "action,reason"},
		{"awscni_policy_agent_calls_total", "COUNTER", "The number of calls of the network policy agent, by call and result", "call,result"},
		{"awscni_policy_agent_waiting_deletions", "GAUGE", "The number of deleted pods not yet reported to the network policy agent", ""},
		{"awscni_host_state_repairs_total", "COUNTER", "The number of host network objects restored after another program removed them, by kind", "object"},
		{"awscni_conntrack_passes_total", "COUNTER", "The number of passes that delete the connection tracking entries of released addresses, by result", "result"},
		{"awscni_conntrack_deleted_total", "COUNTER", "The number of connection tracking entries of released addresses that were deleted", ""},
		{"awscni_ec2_backoff_seconds", "GAUGE", "The remaining back-off after EC2 refused a request, by target and cause", "cause,target"},
	} {
		if _, recorded := want[f.Name]; recorded {
			t.Errorf("%s is recorded and listed", f.Name)
		}
		want[f.Name] = f
	}
	m := New(Options{Version: "v1.0.0", GoVersion: "go1.26.8"})
	exercise(m)
	got := families(t, strings.NewReader(scrape(t, m)))
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("families (-want +got):\n%s", d)
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	m := New(Options{Version: "v1.0.0", GoVersion: "go1.26.8"})
	exercise(m)
	text := scrape(t, m)
	for _, line := range []string{
		`awscni_add_ip_req_count 1`,
		`awscni_del_ip_req_count{reason="PodDeleted"} 1`,
		`awscni_no_available_ip_addresses 1`,
		`awscni_failed_add_count{cause="subnet-exhausted"} 1`,
		`awscni_waiting_add_requests 3`,
		`awscni_add_ip_wait_seconds_bucket{le="0.25"} 1`,
		`awscni_add_ip_wait_seconds_bucket{le="0.1"} 0`,
		`awscni_ec2api_req_count{fn="CreateNetworkInterface"} 2`,
		`awscni_ec2api_error_count{fn="CreateNetworkInterface"} 1`,
		`awscni_aws_api_error_count{api="CreateNetworkInterface",error="InsufficientFreeAddressesInSubnet"} 1`,
		`awscni_aws_api_latency_ms_sum{api="CreateNetworkInterface",error="false",status="200"} 1.5`,
		`awscni_aws_api_latency_ms_count{api="CreateNetworkInterface",error="true",status="InsufficientFreeAddressesInSubnet"} 1`,
		`awscni_aws_api_latency_ms_sum{api="waitForENIAndIPsAttached",error="false",status="200"} 5`,
		`awscni_force_removed_enis 1`,
		`awscni_force_removed_ips 2`,
		`awscni_ipamd_action_inprogress{fn="increaseDatastorePool"} 0`,
		`awscni_ipamd_startup_duration_seconds_bucket{failure_reason="",success="true",with_api_server="true",le="0.5"} 1`,
		`awscni_ipamd_startup_duration_seconds_bucket{failure_reason="",success="true",with_api_server="true",le="300"} 1`,
		`awscni_ipamd_node_initialization_duration_seconds_sum{success="true"} 0.169`,
		`awscni_connmark_backend{backend="nftables"} 1`,
		`awscni_connmark_reconcile_total{result="error"} 0`,
		`awscni_connmark_reconcile_total{result="success"} 1`,
		`awscni_build_info{goversion="go1.26.8",version="v1.0.0"} 1`,
		`awscni_plan_actions_total{action="attach",reason="waiting"} 1`,
		`awscni_eni_allocated 2`,
		`awscni_eni_max 3`,
		`awscni_ip_max 27`,
		`awscni_total_ip_addresses 18`,
		`awscni_assigned_ip_addresses 16`,
		`awscni_cooling_ip_addresses 1`,
		`awscni_total_ipv4_prefixes 0`,
		`awscni_pod_capacity 35`,
		`awscni_last_reconcile_timestamp_seconds 1.787e+09`,
		`awscni_trunk_eni 1`,
		`awscni_branch_eni 3`,
		`awscni_branch_eni_max 9`,
		`awscni_assigned_ip_per_cidr{cidr="10.0.0.18/32"} 0`,
		`awscni_assigned_ip_per_eni{eni="eni-2"} 8`,
		`awscni_ec2_backoff_seconds{cause="ec2-throttled",target="attach"} 1.5`,
		`promhttp_metric_handler_requests_in_flight 1`,
		`promhttp_metric_handler_requests_total{code="503"} 0`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	for _, start := range []string{"go_goroutines ", "process_cpu_seconds_total ", "process_resident_memory_bytes "} {
		if !strings.Contains(text, "\n"+start) {
			t.Errorf("no %s", start)
		}
	}
}

func TestRequestLabels(t *testing.T) {
	t.Parallel()
	m := New(Options{})
	m.DelRequest("SetupNSFailed")
	m.DelRequest("something from outside")
	m.EC2Call("AssignIpv6Addresses", time.Millisecond, "", errors.New("timeout"))
	m.IMDSError("GetMACs")
	m.IMDSOutOfSync("InvalidNetworkInterfaceID.NotFound")
	m.ConnmarkBackend("iptables")
	m.ConnmarkBackend("nftables")
	m.ConnmarkReconcile(errors.New("no"))
	m.Started(time.Minute, false, FailedNodeInit)
	m.NodeInitialized(time.Minute, errors.New("no"))
	done := m.Action(FnReconcilePool)
	text := scrape(t, m)
	done()
	for _, line := range []string{
		`awscni_del_ip_req_count{reason="SetupNSFailed"} 1`,
		`awscni_del_ip_req_count{reason="Other"} 1`,
		`awscni_ec2api_error_count{fn="AssignIpv6Addresses"} 1`,
		`awscni_aws_api_latency_ms_count{api="AssignIpv6AddressesWithContext",error="true",status=""} 1`,
		`awscni_aws_api_error_count{api="AssignIpv6AddressesWithContext",error="RequestError"} 1`,
		`awscni_aws_api_error_count{api="GetMACs",error="IMDSRequestError"} 1`,
		`awscni_aws_api_error_count{api="IMDSMetaDataOutOfSync",error="InvalidNetworkInterfaceID.NotFound"} 1`,
		`awscni_connmark_backend{backend="nftables"} 1`,
		`awscni_connmark_reconcile_total{result="error"} 1`,
		`awscni_ipamd_startup_duration_seconds_count{failure_reason="node_initialization",success="false",with_api_server="false"} 1`,
		`awscni_ipamd_node_initialization_duration_seconds_count{success="false"} 1`,
		`awscni_ipamd_action_inprogress{fn="nodeIPPoolReconcile"} 1`,
		`awscni_eni_allocated 0`, // the pool was never set
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	if strings.Contains(text, `backend="iptables"`) {
		t.Error("the backend not in use has a series")
	}
	if !strings.Contains(scrape(t, m), `awscni_ipamd_action_inprogress{fn="nodeIPPoolReconcile"} 0`) {
		t.Error("an action does not end")
	}
}

// Each scrape queries the pool: cards are added up and series of removed CIDRs disappear.
func TestPool_FromSnapshot(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 8, 21, 9, 0, 0, 0, time.UTC)
	book := ipam.New(ipam.Options{Cooldown: 30 * time.Second})
	apply := func(events ...ipam.Event) {
		t.Helper()
		for _, ev := range events {
			if _, err := book.Apply(now, ev); err != nil {
				t.Fatalf("%+v: %v", ev, err)
			}
		}
	}
	cidrs := func(list ...string) (all []netip.Prefix) {
		for _, s := range list {
			all = append(all, netip.MustParsePrefix(s))
		}
		return all
	}
	sandbox := func(i int) ipam.Sandbox {
		return ipam.Sandbox{Network: "aws-cni", ContainerID: fmt.Sprint(i), IfName: "eth0"}
	}
	apply(
		ipam.AttachENI{ENI: ipam.ENI{ID: "eni-0"}, CIDRs: cidrs("10.0.0.10/32", "10.0.0.11/32", "10.0.0.16/28")},
		ipam.AttachENI{ENI: ipam.ENI{ID: "eni-1", Card: 1, Excluded: true}, CIDRs: cidrs("10.0.1.10/32")},
		ipam.Restore{Sandbox: sandbox(0), Address: netip.MustParseAddr("10.0.1.10")},
		ipam.Assign{Sandbox: sandbox(1), Family: ipam.IPv4},
		ipam.Assign{Sandbox: sandbox(2), Family: ipam.IPv4},
		ipam.Assign{Sandbox: sandbox(3), Kind: ipam.Prefixes, Family: ipam.IPv4},
		ipam.Unassign{Sandbox: sandbox(2)},
	)
	m := New(Options{Pool: func() PoolGauges { return FromSnapshot(book.Snapshot(), now, book.Cooldown()) }})
	gauges := func() string {
		var lines []string
		for line := range strings.Lines(scrape(t, m)) {
			for _, name := range []string{"awscni_eni_allocated", "awscni_total_ip", "awscni_assigned_ip", "awscni_cooling"} {
				if strings.HasPrefix(line, name) {
					lines = append(lines, line)
				}
			}
		}
		return strings.Join(lines, "")
	}
	want := `awscni_assigned_ip_addresses 3
awscni_assigned_ip_per_cidr{cidr="10.0.0.10/32"} 1
awscni_assigned_ip_per_cidr{cidr="10.0.0.11/32"} 0
awscni_assigned_ip_per_cidr{cidr="10.0.0.16/28"} 1
awscni_assigned_ip_per_cidr{cidr="10.0.1.10/32"} 1
awscni_assigned_ip_per_eni{eni="eni-0"} 2
awscni_assigned_ip_per_eni{eni="eni-1"} 1
awscni_cooling_ip_addresses 1
awscni_eni_allocated 2
awscni_total_ip_addresses 19
awscni_total_ipv4_prefixes 1
`
	if got := gauges(); got != want {
		t.Errorf("gauges:\n%s\nwant:\n%s", got, want)
	}
	now = now.Add(time.Minute)
	apply(
		ipam.RemoveCIDRs{ID: "eni-0", CIDRs: cidrs("10.0.0.16/28"), Force: true},
		ipam.DetachENI{ID: "eni-1", Force: true},
	)
	want = `awscni_assigned_ip_addresses 1
awscni_assigned_ip_per_cidr{cidr="10.0.0.10/32"} 1
awscni_assigned_ip_per_cidr{cidr="10.0.0.11/32"} 0
awscni_assigned_ip_per_eni{eni="eni-0"} 1
awscni_cooling_ip_addresses 0
awscni_eni_allocated 1
awscni_total_ip_addresses 2
awscni_total_ipv4_prefixes 0
`
	if got := gauges(); got != want {
		t.Errorf("after removals:\n%s\nwant:\n%s", got, want)
	}
}

// A duplicate series must not fail the whole scrape.
func TestHandler_SurvivesDuplicates(t *testing.T) {
	t.Parallel()
	m := New(Options{Pool: func() PoolGauges {
		return PoolGauges{ENIs: 1, ByCIDR: []CIDRGauge{{"10.0.0.1/32", 1}, {"10.0.0.1/32", 1}}}
	}})
	m.AddRequest()
	if text := scrape(t, m); !strings.Contains(text, "awscni_add_ip_req_count 1\n") || !strings.Contains(text, "awscni_eni_allocated 1\n") {
		t.Errorf("scrape:\n%s", text)
	}
}

// Two daemons in one process, as in tests, share nothing.
func TestNew_OwnRegistry(t *testing.T) {
	t.Parallel()
	one, two := New(Options{}), New(Options{})
	one.AddRequest()
	if text := scrape(t, two); !strings.Contains(text, "awscni_add_ip_req_count 0\n") {
		t.Error("counts are shared")
	}
	if again, err := one.Gatherer().Gather(); err != nil || len(again) == 0 {
		t.Errorf("gathered %d families, %v", len(again), err)
	}
}

func BenchmarkAdd(b *testing.B) {
	m := New(Options{})
	b.ReportAllocs()
	for b.Loop() {
		m.AddRequest()
		m.AddWaited(time.Millisecond)
	}
}
