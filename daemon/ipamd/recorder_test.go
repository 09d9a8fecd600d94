package ipamd

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/internal/introspectserver"
	"cnictl/daemon/internal/logging"
	"cnictl/daemon/internal/metrics"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
	"cnictl/daemon/procedure"
	"cnictl/daemon/warmpool"
)

// TestEventKinds_AreProduced wants somebody who produces each kind of event that is
// documented: the keeper, this package, or the server of the feed.
func TestEventKinds_AreProduced(t *testing.T) {
	t.Parallel()
	produced := map[string]bool{string(introspect.EventStarted): true, string(introspect.EventGap): true, string(introspect.EventHostStateRepaired): true}
	names := map[string]string{} // of the keeper's kinds, by constant
	uses := map[string]int{}
	files, err := filepath.Glob("../keeper/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				if kind, ok := n.Type.(*ast.Ident); ok && kind.Name == "Kind" {
					names[n.Names[0].Name], err = strconv.Unquote(n.Values[0].(*ast.BasicLit).Value)
					uses[n.Names[0].Name]-- // its declaration
				}
			case *ast.Ident:
				uses[n.Name]++
			}
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range names {
		if uses[name] <= 0 {
			t.Errorf("the keeper never records %s", name)
		}
		produced[text] = true
	}
	for _, kind := range introspect.EventKinds() {
		if !produced[string(kind)] {
			t.Errorf("nobody produces %s", kind)
		}
	}
}

// recorded is a recorder with its log.
type recorded struct {
	*recorder
	t   *testing.T
	log strings.Builder
	met *metrics.Metrics
}

func newRecorded(t *testing.T, level slog.Level, policy warmpool.Policy) *recorded {
	r := &recorded{t: t, met: metrics.New(metrics.Options{})}
	r.recorder = newRecorder(t.Context(), slog.New(logging.NewHandler(&r.log, level)), r.met, introspectserver.NewFeed(time.Now()), policy)
	return r
}

// value is that of one series, by the value of its only label.
func (r *recorded) value(family, label string) (value float64) {
	r.t.Helper()
	families, err := r.met.Gatherer().Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == family && (label == "" || m.GetLabel()[0].GetValue() == label) {
				value += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return value
}

// TestFailedAddLine decides for each cause whether it is the line that exhaustion alarms
// count.
func TestFailedAddLine(t *testing.T) {
	t.Parallel()
	codes, err := os.ReadFile("../api/cause/testdata/codes.txt")
	if err != nil {
		t.Fatal(err)
	}
	const exhausted, detail = "DataStore has no available IP/Prefix addresses", "the detail"
	lines := map[string]string{
		"pool-dry": exhausted, "pool-full": exhausted, "addresses-cooling": exhausted, "subnet-exhausted": exhausted, "subnet-fragmented": exhausted,
		"no-usable-subnet": exhausted, "ec2-throttled": exhausted, "ec2-unauthorized": exhausted, "ec2-error": exhausted,
		"eni-attach-limit": exhausted, "eni-link-missing": exhausted, "eniconfig-missing": exhausted, "node-unschedulable": exhausted,
		"provisioning-disabled": exhausted,

		"invalid-request":       "Unable to generate IPAMKey from the detail",
		"multi-nic-disabled":    "enable multi-nic feature on CNI for creating multi-nic-attachment pods (the detail)",
		"checkpoint-unwritable": "Failed to update backing store: the detail",
		"pod-network-setup":     "address given back: the pod's network could not be set up",
		"daemon-terminating":    "no address given: " + cause.Code("daemon-terminating").Title(),
		"daemon-starting":       "no address given: " + cause.Code("daemon-starting").Title(),
		"internal":              "no address given: " + cause.Code("internal").Title(),
		"not-supported":         "no address given: " + cause.Code("not-supported").Title(),

		// Logged where they are found.
		"trunk-missing": "", "trunk-link-missing": "", "branch-pending": "", "branch-invalid": "", "pod-unknown": "", "pod-annotation": "",
		"policy-agent-unreachable": "", "policy-agent-refused": "",

		// The plugin's own, which the daemon never answers.
		"invalid-config": "-", "daemon-unreachable": "-", "daemon-mismatch": "-", "netns-gone": "-", "pod-network-teardown": "-",
		"pod-network-changed": "-", "checkpoint-unreadable": "-",
	}
	for _, code := range strings.Fields(string(codes)) {
		want, known := lines[code]
		if !known {
			t.Errorf("%s: no line is decided on", code)
		}
		got := failedAddLine(cause.Code(code), detail)
		if want == "-" {
			if strings.HasPrefix(got, exhausted) {
				t.Errorf("%s: %q", code, got)
			}
			continue
		}
		if got != want {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}

// TestRecorder_OriginalLines writes upstream's line of each event that has one, and
// one line only.
func TestRecorder_OriginalLines(t *testing.T) {
	t.Parallel()
	at, refused := time.Date(2026, 11, 21, 2, 59, 48, 0, time.UTC), errors.New("api error UnauthorizedOperation: no")
	create := fmt.Errorf("%w in subnet-1: %w", procedure.ErrCreate, refused)
	for _, row := range []struct {
		e    keeper.Event
		want string
	}{
		{keeper.Event{Kind: keeper.AddressReleased, At: at, Address: netip.MustParseAddr("10.0.0.12")},
			"info IP 10.0.0.12 entering cooldown period of 30s (available after 2026-11-21T03:00:18Z)"},
		{keeper.Event{Kind: keeper.NodeChanged, Text: keeper.MaxPodsChanged, Count: 737},
			"info IP pool manager - max pods: 737, warm IP target: 1, warm prefix target: 1, warm ENI target: 1, minimum IP target: 14"},
		{keeper.Event{Kind: keeper.NodeChanged, Text: keeper.Cordoned},
			"info AWS CNI is on a non schedulable node, the pool changes for waiting pods only"},
		{keeper.Event{Kind: keeper.ActionStarted, Op: 1, Action: warmpool.PendingAttach, Card: 1, Reason: string(warmpool.WarmENI)},
			"info IP pool is too low for Network Card 1"},
		{keeper.Event{Kind: keeper.ActionFailed, Op: 1, Action: warmpool.PendingAttach, Subnet: "subnet-1", Err: create},
			"warn Failed to CreateNetworkInterface " + create.Error() + " for subnet subnet-1"},
		{keeper.Event{Kind: keeper.ActionFailed, Op: 1, Action: warmpool.PendingAttach, Err: refused}, "warn pool action failed"},
		{keeper.Event{Kind: keeper.ActionFailed, Op: 1, Action: warmpool.PendingAssign, ENI: "eni-1", Err: refused},
			"warn Failed to allocate a private IP/Prefix addresses on ENI eni-1: " + refused.Error()},
		{keeper.Event{Kind: keeper.ActionFailed, Op: 1, Action: warmpool.PendingDetach, ENI: "eni-1", Err: refused},
			"warn Failed to detach ENI eni-1: " + refused.Error()},
		{keeper.Event{Kind: keeper.Warned, Text: procedure.LeakKept, ENI: "eni-1", Err: refused}, "warn Not able to delete ENI eni-1: " + refused.Error()},
		{keeper.Event{Kind: keeper.LeaksFound, Count: 3}, "info Found 3 leaked ENIs with the AWS CNI tag"},
		{keeper.Event{Kind: keeper.ReconcileNote, Reason: "metadata-differs", ENI: "eni-1"}, "warn Instance metadata does not match data store!"},
		{keeper.Event{Kind: keeper.ReconcileNote, Reason: "eni-removed", ENI: "eni-1"}, "warn Reconcile and delete detached ENI eni-1"},
		{keeper.Event{Kind: keeper.ENIUnmanaged, Text: "not the CNI's to manage", ENI: "eni-1"}, "info Marking ENI eni-1 as being unmanaged"},
	} {
		r := newRecorded(t, slog.LevelInfo, warmpool.Policy{Cooldown: 30 * time.Second, WarmIP: 1, WarmPrefix: 1, WarmENI: 1, MinIP: 14})
		r.record(row.e)
		level, text, _ := strings.Cut(row.want, " ")
		line := r.log.String()
		if strings.Count(line, "\n") != 1 || !strings.Contains(line, `"msg":"`+text+`"`) || !strings.Contains(line, `"level":"`+level+`"`) {
			t.Errorf("%s:\n have %s want %s", row.e.Kind, line, row.want)
		}
	}
}

// TestRecorder_Refused counts what the address book did not take under upstream's
// names.
func TestRecorder_Refused(t *testing.T) {
	t.Parallel()
	single, prefix := []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")}, []netip.Prefix{netip.MustParsePrefix("10.0.0.16/28")}
	for _, row := range []struct {
		event  ipam.Event
		reason string
		cidrs  []netip.Prefix
		want   string
	}{
		{ipam.AddCIDRs{}, keeper.ByReconcile, single, "ipReconcileAdd"}, {ipam.AddCIDRs{}, keeper.ByReconcile, prefix, "prefixReconcileAdd"},
		{ipam.RemoveCIDRs{}, keeper.ByReconcile, single, "ipReconcileDel"}, {ipam.DetachENI{}, keeper.ByReconcile, nil, "eniReconcileDel"},
		{ipam.AddCIDRs{}, "", single, "addENIsecondaryIPsToDataStoreFailed"}, {ipam.AttachENI{}, "", prefix, "addENIv4prefixesToDataStoreFailed"},
		{ipam.RemoveCIDRs{}, "", single, "decreaseIPPool"}, {ipam.DetachENI{}, "", nil, "decreaseIPPoolFreeENIFailed"},
	} {
		r := newRecorded(t, slog.LevelInfo, warmpool.Policy{})
		r.record(keeper.Event{Kind: keeper.BookRefused, Text: keeper.EventName(row.event), Reason: row.reason, CIDRs: row.cidrs, Err: errors.New("no")})
		if n := r.value("awscni_ipamd_error_count", row.want); n != 1 {
			t.Errorf("%T %s: %s counted %v times", row.event, row.reason, row.want, n)
		}
	}
}

// TestRecorder_CountsAgree makes calls of every outcome: the summary, the metrics and
// the caller count the same.
func TestRecorder_CountsAgree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLonely(t, nil)
		o := l.owner
		stop := make(chan struct{})
		go o.run(stop)
		go func() {
			for {
				select {
				case img := <-l.images:
					o.deliver(keeper.Committed{Gen: img.Gen})
				case <-o.ended:
					return
				}
			}
		}()
		server := &backend{owner: o}
		del := func(name, reason string) {
			server.Del(t.Context(), &cniwire.DelRequest{
				PodName: name, PodNamespace: "shop", ContainerID: name, IfName: "eth0", NetworkName: "aws-cni", Reason: reason,
			})
		}
		adds, dels := 0, 0
		for i := range 11 { // two more than there are
			server.Add(t.Context(), addRequest(fmt.Sprint("p", i)))
			adds++
		}
		for i := range 3 {
			del(fmt.Sprint("p", i), metrics.ReasonPodDeleted)
			del(fmt.Sprint("p", i), metrics.ReasonPodDeleted) // unknown by now
			dels += 2
		}
		del("p5", metrics.ReasonSetupNSFailed)
		dels++
		v := l.View()
		close(stop)
		<-o.ended

		r := &recorded{t: t, met: l.metrics}
		s := v.Summary
		for name, counts := range map[string][3]float64{
			"ADDs":        {float64(s.ADDs.Total), r.value("awscni_add_ip_req_count", ""), float64(adds)},
			"DELs":        {float64(s.DELs.Total), r.value("awscni_del_ip_req_count", ""), float64(dels)},
			"failed ADDs": {float64(*s.ADDs.Failed), r.value("awscni_failed_add_count", ""), 3},
			"given back":  {float64(s.ADDs.Causes[string(cause.PodNetworkSetup)]), r.value("awscni_failed_add_count", string(cause.PodNetworkSetup)), 1},
		} {
			if counts[0] != counts[2] || counts[1] != counts[2] {
				t.Errorf("%s: summary %v, metric %v, made %v", name, counts[0], counts[1], counts[2])
			}
		}
	})
}

// TestPoolLines_OnChange tells a state once.
func TestPoolLines_OnChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLonely(t, func(n *node) { n.config.MaxENI = 1 })
		var log strings.Builder
		k := l.owner.keeper
		_, policy := k.Pool(time.Now())
		p := newPoolLines(t.Context(), slog.New(logging.NewHandler(&log, slog.LevelDebug)), policy)
		want := func(lines ...string) {
			t.Helper()
			if strings.Count(log.String(), "\n") != len(lines) {
				t.Errorf("want %d lines: %s", len(lines), log.String())
			}
			for _, line := range lines {
				if !strings.Contains(log.String(), `"msg":"`+line+`"`) {
					t.Errorf("no %q in %s", line, log.String())
				}
			}
			log.Reset()
		}
		p.grown = true
		p.stepped(k, time.Now())
		want("IP pool stats for network card 0: Total IPs/Prefixes = 9/0, AssignedIPs/CooldownIPs: 0/0, c.maxIPsPerENI = 9",
			"IP stats for Network Card 0 - total IPs: 9, assigned IPs: 0, cooldown IPs: 0",
			"ENI eni-primary cannot be deleted because it is primary")
		p.grown = true
		p.stepped(k, time.Now())
		want()
		k.Handle(time.Now(), &keeper.Add{Request: addRequest("a"), Reply: func(*cniwire.AddReply) {}})
		p.grown = true
		p.stepped(k, time.Now())
		want("IP stats for Network Card 0 - total IPs: 9, assigned IPs: 1, cooldown IPs: 0",
			"Skipping ENI allocation as the max ENI limit is already reached")
		p.note(keeper.Event{Kind: keeper.AddressReleased, At: time.Now(), Address: netip.MustParseAddr("10.0.1.1")})
		p.next = time.Now().Add(time.Hour)
		p.stepped(k, time.Now().Add(29*time.Second))
		want()
		p.stepped(k, time.Now().Add(30*time.Second))
		want("IP 10.0.1.1 released from cooldown")
	})
}
