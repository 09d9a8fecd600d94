package ipamd

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/config"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/internal/logging"
	"cnictl/daemon/internal/metrics"
	"cnictl/daemon/keeper"
	"cnictl/daemon/warmpool"
)

// eventTypes lists the keeper's event types, and requires each to be recorded.
func eventTypes(t *testing.T) map[string]bool {
	t.Helper()
	types, uses := map[string]bool{}, map[string]int{}
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
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok && len(s.Fields.List) > 0 && len(s.Fields.List[0].Names) == 0 {
					if id, ok := s.Fields.List[0].Type.(*ast.Ident); ok && id.Name == "happened" {
						types["keeper."+n.Name.Name] = true
					}
				}
			case *ast.CompositeLit:
				if id, ok := n.Type.(*ast.Ident); ok {
					uses["keeper."+id.Name]++
				}
			}
			return true
		})
	}
	for name := range types {
		if uses[name] == 0 && name != "keeper.Noted" { // the shell posts it
			t.Errorf("the keeper never records a %s", name)
		}
	}
	return types
}

// TestEventKinds_AreProduced: each documented kind of event is produced by the keeper, by
// this package, or by the feed's server.
func TestEventKinds_AreProduced(t *testing.T) {
	t.Parallel()
	produced := map[introspect.EventKind]bool{introspect.EventStarted: true, introspect.EventGap: true, introspect.EventHostStateRepaired: true, introspect.EventBackendChanged: true}
	produced[settingProblem(config.Problem{Variable: "ENABLE_V6_EGRESS"}).journal.Kind] = true
	for _, row := range recordedEvents() {
		produced[reportOf(row.e, time.Time{}, warmpool.Policy{}).journal.Kind] = true
	}
	for _, kind := range introspect.EventKinds() {
		if !produced[kind] {
			t.Errorf("nothing produces %s", kind)
		}
	}
}

// TestEventKinds_Warnings: what the daemon logs as a warning or an error, readers of its events see
// as one.
func TestEventKinds_Warnings(t *testing.T) {
	t.Parallel()
	warned := map[introspect.EventKind]bool{ // logged where they are detected
		settingProblem(config.Problem{}).journal.Kind: true, introspect.EventBackendChanged: true, introspect.EventHostStateRepaired: true,
	}
	for _, row := range recordedEvents() {
		if p := reportOf(row.e, time.Time{}, warmpool.Policy{}); p.log.text != "" && p.log.level >= slog.LevelWarn && p.journal.Kind != "" {
			warned[p.journal.Kind] = true
		}
	}
	delete(warned, introspect.EventUnquarantined) // a difference, but good news
	for kind := range warned {
		if !inventory.EventWarning(kind) {
			t.Errorf("%s is logged as a warning, but is none", kind)
		}
	}
}

// valueOf returns the value of the series with this value of its only label, or the sum of
// all series if label is empty.
func valueOf(t *testing.T, met *metrics.Metrics, family, label string) (value float64) {
	t.Helper()
	families, err := met.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
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

// TestFailedAddLine decides for each cause whether its line counts for exhaustion alarms.
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
		"pod-network-setup":     "address returned: pod network setup failed",
		"daemon-terminating":    "no address assigned: " + cause.Code("daemon-terminating").Title(),
		"daemon-starting":       "no address assigned: " + cause.Code("daemon-starting").Title(),
		"internal":              "no address assigned: " + cause.Code("internal").Title(),
		"link-conflict":         "no address assigned: " + cause.Code("link-conflict").Title(),
		"not-supported":         "no address assigned: " + cause.Code("not-supported").Title(),

		// Logged where they are detected.
		"trunk-missing": "", "trunk-link-missing": "", "branch-pending": "", "branch-invalid": "", "branch-conflict": "", "pod-unknown": "", "pod-annotation": "",
		"policy-agent-unreachable": "", "policy-agent-refused": "",

		// The plugin's own causes, which the daemon never returns.
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

// TestRecorder_CountsAgree makes calls with every outcome: the summary, the metrics and the
// caller agree on the counts.
func TestRecorder_CountsAgree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLonely(t, nil)
		o := l.owner
		stop := make(chan struct{})
		go o.run(stop)
		go l.save()
		server := &backend{owner: o}
		del := func(name, reason string) {
			server.Del(t.Context(), &cniwire.DelRequest{
				PodName: name, PodNamespace: "shop", ContainerID: name, IfName: "eth0", NetworkName: "aws-cni", Reason: reason,
			})
		}
		adds, dels := 0, 0
		for i := range 11 { // two more than available
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

		s := v.Summary
		for name, counts := range map[string][3]float64{
			"ADDs":        {float64(s.ADDs.Total), valueOf(t, l.metrics, "awscni_add_ip_req_count", ""), float64(adds)},
			"DELs":        {float64(s.DELs.Total), valueOf(t, l.metrics, "awscni_del_ip_req_count", ""), float64(dels)},
			"failed ADDs": {float64(*s.ADDs.Failed), valueOf(t, l.metrics, "awscni_failed_add_count", ""), 3},
			"given back":  {float64(s.ADDs.Causes[string(cause.PodNetworkSetup)]), valueOf(t, l.metrics, "awscni_failed_add_count", string(cause.PodNetworkSetup)), 1},
		} {
			if counts[0] != counts[2] || counts[1] != counts[2] {
				t.Errorf("%s: summary %v, metric %v, made %v", name, counts[0], counts[1], counts[2])
			}
		}
	})
}

// TestPoolLines_OnChange logs a state once.
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
		p.note(poolUsed, netip.MustParseAddr("10.0.1.1"), time.Now())
		p.next = time.Now().Add(time.Hour)
		p.stepped(k, time.Now().Add(29*time.Second))
		want()
		p.stepped(k, time.Now().Add(30*time.Second))
		want("IP 10.0.1.1 released from cooldown")
	})
}
