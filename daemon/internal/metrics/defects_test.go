package metrics

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"cnictl/daemon/ipam"
)

// These tests cover upstream's wrong counts (docs/compatibility.md, 13.2): one test each,
// named after the defect.

// pool is an address book observed through the metrics.
type pool struct {
	t    *testing.T
	book *ipam.Book
	now  time.Time
	m    *Metrics
}

func newPool(t *testing.T) *pool {
	p := &pool{t: t, now: time.Date(2026, 8, 21, 9, 0, 0, 0, time.UTC), book: ipam.New(ipam.Options{Cooldown: 30 * time.Second})}
	p.m = New(Options{Pool: func() PoolGauges { return FromSnapshot(p.book.Snapshot(), p.now, p.book.Cooldown()) }})
	return p
}

func (p *pool) apply(events ...ipam.Event) {
	p.t.Helper()
	for _, ev := range events {
		if _, err := p.book.Apply(p.now, ev); err != nil {
			p.t.Fatalf("%+v: %v", ev, err)
		}
	}
}

// has checks that a scrape contains the lines, or lacks those that begin with !.
func (p *pool) has(lines ...string) {
	p.t.Helper()
	hasLines(p.t, p.m, lines...)
}

func hasLines(t *testing.T, m *Metrics, lines ...string) {
	t.Helper()
	text := "\n" + scrape(t, m)
	for _, line := range lines {
		want, not := strings.CutPrefix(line, "!")
		if strings.Contains(text, "\n"+want) == not {
			t.Errorf("%q there: %v, in\n%s", want, not, text)
		}
	}
}

func prefixes(list ...string) (all []netip.Prefix) {
	for _, s := range list {
		all = append(all, netip.MustParsePrefix(s))
	}
	return all
}

func box(i int) ipam.Sandbox {
	return ipam.Sandbox{Network: "aws-cni", ContainerID: fmt.Sprint(i), IfName: "eth0"}
}

func TestDefect_CardsOverwriteEachOther(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	p.apply(
		ipam.AttachENI{ENI: ipam.ENI{ID: "eni-0"}, CIDRs: prefixes("10.0.0.10/32", "10.0.0.11/32")},
		ipam.AttachENI{ENI: ipam.ENI{ID: "eni-1", Card: 1}, CIDRs: prefixes("10.0.1.10/32")},
		ipam.Restore{Sandbox: box(0), Address: netip.MustParseAddr("10.0.0.10")},
		ipam.Restore{Sandbox: box(1), Address: netip.MustParseAddr("10.0.1.10")},
	)
	p.has("awscni_eni_allocated 2\n", "awscni_total_ip_addresses 3\n", "awscni_assigned_ip_addresses 2\n")
}

func TestDefect_ForcedRemovalLeavesGauges(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	p.apply(
		ipam.AttachENI{ENI: ipam.ENI{ID: "eni-0"}, CIDRs: prefixes("10.0.0.10/32", "10.0.0.16/28")},
		ipam.AttachENI{ENI: ipam.ENI{ID: "eni-1"}, CIDRs: prefixes("10.0.1.10/32")},
		ipam.Restore{Sandbox: box(0), Address: netip.MustParseAddr("10.0.0.10")},
		ipam.Restore{Sandbox: box(1), Address: netip.MustParseAddr("10.0.0.17")},
		ipam.Restore{Sandbox: box(2), Address: netip.MustParseAddr("10.0.1.10")},
		ipam.RemoveCIDRs{ID: "eni-0", CIDRs: prefixes("10.0.0.16/28"), Force: true},
		ipam.DetachENI{ID: "eni-1", Force: true},
	)
	p.m.ForceRemovedIPs(1)
	p.m.ForceRemovedENI(1)
	p.has("awscni_assigned_ip_addresses 1\n", "awscni_total_ip_addresses 1\n", "awscni_total_ipv4_prefixes 0\n",
		`awscni_assigned_ip_per_eni{eni="eni-0"} 1`, `!awscni_assigned_ip_per_eni{eni="eni-1"}`,
		`!awscni_assigned_ip_per_cidr{cidr="10.0.0.16/28"}`, `!awscni_assigned_ip_per_cidr{cidr="10.0.1.10/32"}`,
		"awscni_force_removed_ips 2\n", "awscni_force_removed_enis 1\n")
}

func TestDefect_CIDRGaugeNegativeInIPv6(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	p.apply(
		ipam.AttachENI{ENI: ipam.ENI{ID: "eni-0"}, CIDRs: prefixes("2001:db8::/80")},
		ipam.Assign{Sandbox: box(0), Kind: ipam.Prefixes, Family: ipam.IPv6},
		ipam.Assign{Sandbox: box(1), Kind: ipam.Prefixes, Family: ipam.IPv6},
	)
	p.has(`awscni_assigned_ip_per_cidr{cidr="2001:db8::/80"} 2`)
	p.apply(ipam.Unassign{Sandbox: box(0)}, ipam.Unassign{Sandbox: box(1)})
	p.has(`awscni_assigned_ip_per_cidr{cidr="2001:db8::/80"} 0`, "!awscni_total_ipv4_prefixes 1")
}

func TestDefect_SeriesOfCIDRsStay(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	p.apply(
		ipam.AttachENI{ENI: ipam.ENI{ID: "eni-0"}, CIDRs: prefixes("10.0.0.10/32")},
		ipam.Assign{Sandbox: box(0), Family: ipam.IPv4}, ipam.Unassign{Sandbox: box(0)},
	)
	p.has(`awscni_assigned_ip_per_cidr{cidr="10.0.0.10/32"} 0`, "awscni_cooling_ip_addresses 1\n")
	p.now = p.now.Add(time.Minute)
	p.apply(ipam.RemoveCIDRs{ID: "eni-0", CIDRs: prefixes("10.0.0.10/32")})
	p.has("!awscni_assigned_ip_per_cidr{", "awscni_cooling_ip_addresses 0\n")
}

func TestDefect_LatencyOfMetadataNotObserved(t *testing.T) {
	t.Parallel()
	m := New(Options{})
	m.IMDSCall("meta-data/mac", 4*time.Millisecond, nil)
	m.IMDSCall("meta-data/network/interfaces/macs/", time.Millisecond, errors.New("HTTP status 500"))
	hasLines(t, m,
		`awscni_aws_api_latency_ms_sum{api="GetMetadata",error="false",status="200"} 4`,
		`awscni_aws_api_latency_ms_count{api="GetMetadata",error="true",status="IMDSRequestError"} 1`)
}

func TestDefect_LatencyOfDescribeInstanceTypesNotObserved(t *testing.T) {
	t.Parallel()
	m := New(Options{})
	m.EC2Call("DescribeInstanceTypes", 30*time.Millisecond, "", nil)
	hasLines(t, m,
		`awscni_aws_api_latency_ms_sum{api="DescribeInstanceTypes",error="false",status="200"} 30`,
		`awscni_ec2api_req_count{fn="DescribeInstanceTypes"} 1`)
}

func TestDefect_MetadataErrorsNotCounted(t *testing.T) {
	t.Parallel()
	m := New(Options{})
	const macs = "meta-data/network/interfaces/macs/"
	getters := map[string]string{
		"meta-data/mac": "GetMAC", macs: "GetMACs", macs + "02:fa:4e:00:00:01/": "GetMACImdsFields",
		macs + "02:fa:4e:00:00:01/device-number": "GetDeviceNumber", macs + "02:fa:4e:00:00:01/interface-id": "GetInterfaceID",
		macs + "02:fa:4e:00:00:01/subnet-id": "GetSubnetID", macs + "02:fa:4e:00:00:01/vpc-id": "GetVpcID",
		macs + "02:fa:4e:00:00:01/security-group-ids": "GetSecurityGroupIDs", macs + "02:fa:4e:00:00:01/local-ipv4s": "GetLocalIPv4s",
		macs + "02:fa:4e:00:00:01/ipv6s": "GetIPv6s", macs + "02:fa:4e:00:00:01/ipv4-prefix": "GetIPv4Prefixes",
		macs + "02:fa:4e:00:00:01/ipv6-prefix": "GetIPv6Prefixes", macs + "02:fa:4e:00:00:01/network-card": "GetNetworkCard",
		macs + "02:fa:4e:00:00:01/subnet-ipv4-cidr-block":  "GetSubnetIPv4CIDRBlock",
		macs + "02:fa:4e:00:00:01/subnet-ipv6-cidr-blocks": "GetSubnetIPv6CIDRBlocks",
		macs + "02:fa:4e:00:00:01/vpc-ipv4-cidr-blocks":    "GetVPCIPv4CIDRBlocks",
		macs + "02:fa:4e:00:00:01/vpc-ipv6-cidr-blocks":    "GetVPCIPv6CIDRBlocks",
		"meta-data/placement/availability-zone":            "GetAZ", "meta-data/instance-id": "GetInstanceID",
		"meta-data/instance-type": "GetInstanceType", "meta-data/local-ipv4": "GetLocalIPv4",
		"dynamic/instance-identity/document": "GetInstanceIdentityDocument",
		"meta-data/spot/instance-action/x":   "GetOther", "": "GetOther",
	}
	times := map[string]int{}
	for path, name := range getters {
		m.IMDSCall(path, time.Millisecond, errors.New("no answer"))
		times[name]++
	}
	for name, n := range times {
		hasLines(t, m, fmt.Sprintf(`awscni_aws_api_error_count{api="%s",error="IMDSRequestError"} %d`, name, n))
	}
}

func TestDefect_TransportErrorsNotCounted(t *testing.T) {
	t.Parallel()
	m := New(Options{})
	m.EC2Call("CreateNetworkInterface", time.Second, "", errors.New("dial tcp: i/o timeout"))
	hasLines(t, m,
		`awscni_aws_api_error_count{api="CreateNetworkInterface",error="RequestError"} 1`,
		`awscni_ec2api_error_count{fn="CreateNetworkInterface"} 1`,
		`awscni_aws_api_latency_ms_count{api="CreateNetworkInterface",error="true",status=""} 1`)
}

func TestDefect_ErrorTextsAreLabels(t *testing.T) {
	t.Parallel()
	m := New(Options{})
	m.AWSUtilsError(FnFreeENIDelete, "InvalidParameterValue")
	m.AWSUtilsError(FnFreeENIDelete, "operation error EC2: DeleteNetworkInterface, RequestID: 1, api error …")
	m.AWSUtilsError(FnFreeENIDelete, strings.Repeat("x", 65))
	m.AWSUtilsError(FnFreeENIDelete, `a"b`+"\n")
	hasLines(t, m,
		`awscni_aws_utils_error_count{error="InvalidParameterValue",fn="FreeENIDeleteErr"} 1`,
		`awscni_aws_utils_error_count{error="Other",fn="FreeENIDeleteErr"} 3`)
	// Whatever answers in place of EC2, from any number of goroutines.
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for j := range 100 {
				code := fmt.Sprintf("Code%d.%d", i, j)
				m.AWSUtilsError(FnAllocENIDelete, code)
				m.EC2Call("CreateTags", time.Millisecond, code, errors.New("no"))
				m.IMDSOutOfSync(code)
			}
		})
	}
	group.Wait()
	text := scrape(t, m)
	for _, family := range []string{"awscni_aws_utils_error_count{", "awscni_aws_api_error_count{", "awscni_aws_api_latency_ms_count{"} {
		if n := strings.Count(text, "\n"+family); n > 2*(maxCodes+2) {
			t.Errorf("%d series of %s", n, family)
		}
	}
	if !strings.Contains(text, `error="Other",fn="AllocENIDeleteErr"`) {
		t.Error("codes beyond the bound are not counted")
	}
}

func TestDefect_StartupBucketsEndAtTenSeconds(t *testing.T) {
	t.Parallel()
	m := New(Options{})
	m.Started(90*time.Second, true, "")
	m.NodeInitialized(90*time.Second, nil)
	const labels = `{failure_reason="",success="true",with_api_server="true",le=`
	hasLines(t, m,
		`awscni_ipamd_startup_duration_seconds_bucket`+labels+`"60"} 0`,
		`awscni_ipamd_startup_duration_seconds_bucket`+labels+`"120"} 1`,
		`awscni_ipamd_node_initialization_duration_seconds_bucket{success="true",le="60"} 0`,
		`awscni_ipamd_node_initialization_duration_seconds_bucket{success="true",le="120"} 1`)
}

func TestDefect_LatencyRoundedToMilliseconds(t *testing.T) {
	t.Parallel()
	m := New(Options{})
	m.EC2Call("CreateTags", 400*time.Microsecond, "", nil)
	hasLines(t, m, `awscni_aws_api_latency_ms_sum{api="CreateTags",error="false",status="200"} 0.4`)
}

// TestDefect_NothingSaid shows the states for which upstream has no metric.
func TestDefect_NothingSaid(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	p.apply(
		ipam.AttachENI{ENI: ipam.ENI{ID: "eni-0"}, CIDRs: prefixes("10.0.0.10/32")},
		ipam.Restore{Sandbox: box(0), Address: netip.MustParseAddr("10.0.9.9")}, // on no ENI
		ipam.Assign{Sandbox: box(1), Family: ipam.IPv4}, ipam.Unassign{Sandbox: box(1)},
	)
	p.has("awscni_cooling_ip_addresses 1\n", "awscni_quarantined_ip_addresses 1\n", "!awscni_max_pods", "!awscni_pod_capacity", "!awscni_last_reconcile", "!awscni_trunk", "!awscni_branch")
	p.m.SetPool(func() PoolGauges {
		return PoolGauges{
			MaxPods: 29, Subnets: []SubnetGauge{{"subnet-1", 0}},
			Backoffs: []BackoffGauge{{"subnet-1", "subnet-exhausted", 2 * time.Minute}},
		}
	})
	p.m.Waiting(2)
	p.m.AddFailed("subnet-exhausted")
	p.has("awscni_max_pods 29\n", `awscni_subnet_free_ip_addresses{subnet="subnet-1"} 0`, "awscni_waiting_add_requests 2\n",
		`awscni_ec2_backoff_seconds{cause="subnet-exhausted",target="subnet-1"} 120`, `awscni_failed_add_count{cause="subnet-exhausted"} 1`)
}
