package monitoring

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
)

const (
	rulesFile = "../../deploy/monitoring/rules.yaml"
	oursGroup = "aws-node-cnictl" // its rules use metrics that upstream lacks
)

// alert is a rule and its group.
type alert struct {
	*rules.AlertingRule
	ours bool
}

// alerts returns the alerts of the rule file, freshly loaded by Prometheus.
func alerts(t *testing.T) map[string]alert {
	t.Helper()
	m := rules.NewManager(&rules.ManagerOptions{Context: t.Context()})
	groups, errs := m.LoadGroups(evalEvery, labels.EmptyLabels(), "", nil, false, rulesFile)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	out := map[string]alert{}
	for _, g := range groups {
		for _, r := range g.Rules() {
			if _, twice := out[r.Name()]; twice {
				t.Errorf("two alerts are named %s", r.Name())
			}
			out[r.Name()] = alert{r.(*rules.AlertingRule), g.Name() == oursGroup}
		}
	}
	return out
}

func newEngine(t *testing.T) *promql.Engine {
	t.Helper()
	e := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 5_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute,
		EnableAtModifier: true, EnableNegativeOffset: true, Parser: parser.NewParser(parser.Options{}),
	})
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// firing evaluates rules as Prometheus does, minute by minute, and returns the alerts that
// ever fire, with one instance of each.
func (b *bed) firing(from time.Duration, of ...alert) map[string]*rules.Alert {
	b.t.Helper()
	query := rules.EngineQueryFunc(newEngine(b.t), b.store)
	out := map[string]*rules.Alert{}
	for at := from; at <= b.end; at += evalEvery {
		for _, a := range of {
			if _, err := a.Eval(b.t.Context(), 0, start.Add(at), query, &url.URL{}, 0); err != nil {
				b.t.Fatalf("%s: %v", a.Name(), err)
			}
			a.ForEachActiveAlert(func(active *rules.Alert) {
				if active.State == rules.StateFiring && out[a.Name()] == nil {
					out[a.Name()] = active
				}
			})
		}
	}
	return out
}

// TestAlerts_Well: on a healthy cluster with either daemon, no alert fires.
func TestAlerts_Well(t *testing.T) {
	for _, r := range recordings {
		t.Run(r.name, func(t *testing.T) {
			all := slices.Collect(maps.Values(alerts(t)))
			for name, a := range load(t, r, false, nil, false, 0, faultyFor).firing(0, all...) {
				if name == r.fires {
					continue
				}
				t.Errorf("%s fires: %s", name, a.Annotations.String())
			}
		})
	}
}

const secondary = "upstream/secondary"

// faults are the faults that each alert must detect: recorded, or changes of a healthy recording.
var faults = []struct {
	alert      string
	recorded   string   // a recording with this fault
	changes    []string // otherwise, changes of a recording without a fault
	everywhere bool     // on all nodes
	on         string   // ours/secondary by default; alerts for both daemons are also tried on upstream's
}{
	{alert: "AwsNodeDown", changes: []string{"down"}},
	{alert: "AwsNodePolicyAgentDown", changes: []string{"agent down"}},
	{alert: "AwsNodeMetricsAbsent", changes: []string{"awscni_eni_max -"}, everywhere: true},
	{alert: "AwsNodeNotReady", changes: []string{`kube_pod_status_ready{namespace="kube-system",pod="aws-node-00001",condition="true"} 0`}},
	{alert: "AwsNodeRolloutStuck", changes: []string{`kube_daemonset_status_updated_number_scheduled{namespace="kube-system",daemonset="aws-node"} 1`}},
	{alert: "AwsNodeRestarts", changes: []string{`kube_pod_container_status_restarts_total{namespace="kube-system",pod="aws-node-00001",container="aws-node"} +0.2`}},
	{alert: "AwsNodeAddressRefused", recorded: secondary},
	{alert: "AwsNodeAddressRefused", recorded: "ours/subnet-empty"},
	{alert: "AwsNodeInstanceLimitNear", changes: []string{"awscni_assigned_ip_addresses 25", "awscni_total_ip_addresses 27"}},
	{alert: "AwsNodeInstanceFull", changes: []string{"awscni_assigned_ip_addresses 26", "awscni_total_ip_addresses 27", "awscni_eni_allocated 3"}},
	{alert: "AwsNodeNoFreeAddresses", changes: []string{"awscni_assigned_ip_addresses 9", "awscni_total_ip_addresses 9", "awscni_eni_allocated 1"}},
	{alert: "AwsNodeEC2Errors", changes: []string{`awscni_ec2api_req_count{fn="AssignPrivateIpAddresses"} +2`, `awscni_ec2api_error_count{fn="AssignPrivateIpAddresses"} +1`}},
	{alert: "AwsNodePermissionMissing", recorded: "ours/unauthorized"},
	{alert: "AwsNodePermissionMissing", changes: []string{`awscni_aws_api_error_count{api="CreateNetworkInterface",error="UnauthorizedOperation"} 1`}},
	{alert: "AwsNodeThrottled", recorded: "ours/throttled"},
	{alert: "AwsNodeThrottled", changes: []string{`awscni_aws_api_error_count{api="CreateNetworkInterface",error="ThrottlingException"} +1`}},
	{alert: "AwsNodeSubnetEmpty", recorded: "ours/subnet-empty"},
	{alert: "AwsNodeSubnetEmpty", changes: []string{`awscni_aws_api_error_count{api="AssignPrivateIpAddresses",error="InsufficientCidrBlocks"} +1`}},
	{alert: "AwsNodeMetadataErrors", changes: []string{`awscni_aws_api_error_count{api="GetMACs",error="IMDSRequestError"} +1`}},
	{alert: "AwsNodeErrors", changes: []string{`awscni_ipamd_error_count{fn="increaseIPPoolAllocENI"} +1`}},
	{alert: "AwsNodeForcedRemoval", changes: []string{"awscni_force_removed_ips 2"}},
	{alert: "AwsNodeForcedRemoval", changes: []string{"awscni_force_removed_enis 1"}},
	{alert: "AwsNodeActionStuck", changes: []string{`awscni_ipamd_action_inprogress{fn="increaseDatastorePool"} 1`}},
	{alert: "AwsNodeHostRulesFailed", changes: []string{`awscni_connmark_reconcile_total{result="error"} 1`}},
	{alert: "AwsNodeBranchErrors", changes: []string{`awscni_pod_eni_error_count{fn="tryEnableSecurityGroupsForPods"} 1`}},
	{alert: "AwsNodeSetupFailing", changes: []string{`awscni_del_ip_req_count{reason="SetupNSFailed"} +12`}},
	{alert: "AwsNodeVersionMix", changes: []string{"awscni_build_info -", `awscni_build_info{version="v1.23.2",goversion="go1.26.8"} 1`}},
	{alert: "AwsNodePolicyAgentErrors", changes: []string{`awsnodeagent_aws_ebpfsdk_error_count{fn="RecoverAllBpfProgramsAndMaps"} 1`}},
	{alert: "AwsNodePolicyDrops", changes: []string{`network_policy_drop_count_total{direction="ingress"} +1200`}},

	{alert: "AwsNodeAddFailing", recorded: "ours/unauthorized"},
	{alert: "AwsNodeAddsWaiting", changes: []string{"awscni_waiting_add_requests 2"}},
	{alert: "AwsNodeAddSlow", changes: []string{`awscni_add_ip_wait_seconds_bucket{le="10"} +1`, `awscni_add_ip_wait_seconds_bucket{le="15"} +1`,
		`awscni_add_ip_wait_seconds_bucket{le="30"} +1`, `awscni_add_ip_wait_seconds_bucket{le="60"} +1`, `awscni_add_ip_wait_seconds_bucket{le="+Inf"} +1`}},
	{alert: "AwsNodeAddressesCooling", changes: []string{"awscni_total_ip_addresses 9", "awscni_assigned_ip_addresses 4", "awscni_cooling_ip_addresses 5"}},
	{alert: "AwsNodeEC2Backoff", recorded: "ours/unauthorized"},
	{alert: "AwsNodeEC2Backoff", recorded: "ours/subnet-empty"},
	{alert: "AwsNodeSubnetLow", changes: []string{`awscni_subnet_free_ip_addresses{subnet="subnet-0fa4e000000000001"} 9`}, everywhere: true},
	{alert: "AwsNodeQuarantine", changes: []string{"awscni_quarantined_ip_addresses 1"}},
	{alert: "AwsNodeReconcileStale", changes: []string{"awscni_last_reconcile_timestamp_seconds 1788000000"}},
	{alert: "AwsNodeMaxPodsTooHigh", changes: []string{"awscni_max_pods 110"}},
	{alert: "AwsNodeTrunkMissing", changes: []string{"awscni_trunk_eni 0"}, on: "ours/trunk"},
	{alert: "AwsNodeBranchLimitNear", changes: []string{"awscni_branch_eni 9"}, on: "ours/trunk"},
	{alert: "AwsNodeHostStateRemoved", changes: []string{`awscni_host_state_repairs_total{object="pod-rule"} +1`}},
	{alert: "AwsNodePolicyAgentUnreachable", changes: []string{`awscni_policy_agent_calls_total{call="delete",result="unreachable"} +2`}},
}

// TestAlerts_Fault: each alert fires on its fault, and its text says where.
func TestAlerts_Fault(t *testing.T) {
	tried := map[string]bool{}
	for _, row := range faults {
		on := []string{"ours/secondary", secondary}
		switch {
		case row.recorded != "":
			on = []string{row.recorded}
		case row.on != "":
			on = []string{row.on}
		case alerts(t)[row.alert].ours:
			on = on[:1]
		}
		tried[row.alert] = true
		for _, name := range on {
			t.Run(row.alert+"/"+strings.Join(append([]string{name}, row.changes...), ","), func(t *testing.T) {
				a, ok := alerts(t)[row.alert]
				if !ok {
					t.Fatal("no such alert")
				}
				b := load(t, recorded(t, name), row.recorded != "", row.changes, row.everywhere, faultyFor, a.HoldDuration()+45*time.Minute)
				fired := b.firing(wellFor-10*time.Minute, a)[row.alert]
				if fired == nil {
					t.Fatalf("does not fire: %s", a.Query())
				}
				text := fired.Annotations.String()
				if strings.Contains(text, "<error") || strings.Contains(text, "<no value>") || strings.Contains(text, " on  ") {
					t.Errorf("annotations: %s", text)
				}
			})
		}
	}
	for name := range alerts(t) {
		if !tried[name] {
			t.Errorf("%s has no fault", name)
		}
	}
}

// TestAlerts_NearMiss: for each threshold that could mislead, a situation that resembles a fault
// fires no alert.
func TestAlerts_NearMiss(t *testing.T) {
	for _, row := range []struct {
		name, alert string
		changes     []string
		everywhere  bool
		lasts       time.Duration
	}{
		{"IPv6 has no limit", "AwsNodeInstanceLimitNear", []string{"awscni_ip_max 0", "awscni_total_ip_addresses 281474976710656", "awscni_assigned_ip_addresses 60"}, true, faultyFor},
		{"a full node is no lagging pool", "AwsNodeNoFreeAddresses", []string{"awscni_total_ip_addresses 27", "awscni_assigned_ip_addresses 27", "awscni_eni_allocated 3"}, false, faultyFor},
		{"WARM_IP_TARGET=1", "AwsNodeNoFreeAddresses", []string{"awscni_total_ip_addresses 5", "awscni_assigned_ip_addresses 4", "awscni_eni_allocated 1"}, true, faultyFor},
		{"room on an ENI", "AwsNodeInstanceFull", []string{"awscni_total_ip_addresses 27", "awscni_assigned_ip_addresses 20", "awscni_eni_allocated 3"}, true, faultyFor},
		{"one failed call", "AwsNodeEC2Errors", []string{`awscni_ec2api_error_count{fn="AssignPrivateIpAddresses"} 1`}, false, faultyFor},
		{"a burst that fits", "AwsNodeActionStuck", []string{`awscni_ipamd_action_inprogress{fn="increaseDatastorePool"} 1`}, false, 12 * time.Minute},
		{"a rollout", "AwsNodeVersionMix", []string{"awscni_build_info -", `awscni_build_info{version="v1.23.2",goversion="go1.26.8"} 1`}, false, time.Hour},
		{"a few drops after a quiet hour", "AwsNodePolicyDrops", []string{`network_policy_drop_count_total{direction="ingress"} +6`}, true, faultyFor},
		{"a restart of the daemon", "AwsNodeDown", []string{"down"}, true, 3 * time.Minute},
		{"the policy agent alone", "AwsNodeDown", []string{"agent down"}, true, faultyFor},
		{"a restart of the agent", "AwsNodePolicyAgentDown", []string{"agent down"}, true, 3 * time.Minute},
		{"a pod of another DaemonSet", "AwsNodeNotReady", []string{`kube_pod_status_ready{namespace="kube-system",pod="aws-node-termination-handler-8kq2d",condition="true"} 0`}, false, faultyFor},
		{"one old reading", "AwsNodeSubnetLow", []string{`awscni_subnet_free_ip_addresses{subnet="subnet-0fa4e000000000001"} 2`}, false, faultyFor},
		{"a throttled quarter of an hour", "AwsNodeEC2Backoff", []string{`awscni_ec2_backoff_seconds{cause="ec2-throttled",target="attach"} 60`}, false, 8 * time.Minute},
		{"addresses that are free already", "AwsNodeAddressesCooling", []string{"awscni_total_ip_addresses 9", "awscni_assigned_ip_addresses 4", "awscni_cooling_ip_addresses 4"}, true, faultyFor},
	} {
		t.Run(row.alert+"/"+row.name, func(t *testing.T) {
			a := alerts(t)[row.alert]
			b := load(t, recorded(t, "ours/secondary"), false, row.changes, row.everywhere, row.lasts, a.HoldDuration()+35*time.Minute)
			if fired := b.firing(wellFor-10*time.Minute, a)[row.alert]; fired != nil {
				t.Errorf("fires: %s", fired.Annotations.String())
			}
		})
	}
}

// TestAlerts_NewPrometheus: old errors fire no alert in a Prometheus that has just started.
func TestAlerts_NewPrometheus(t *testing.T) {
	r := recorded(t, "ours/unauthorized")
	r.well = []string{r.fault}
	all := slices.Collect(maps.Values(alerts(t)))
	states := []string{"AwsNodeEC2Backoff", "AwsNodeNoFreeAddresses"} // current states, not events
	for name := range load(t, r, false, nil, false, 0, 0).firing(0, all...) {
		if !slices.Contains(states, name) {
			t.Errorf("%s fires", name)
		}
	}
}
