package ipamd

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/internal/introspectserver"
	"cnictl/daemon/internal/logging"
	"cnictl/daemon/internal/metrics"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
	"cnictl/testenv/text/golden"
)

// series lists the values of all of our metrics.
func series(t *testing.T, met *metrics.Metrics) map[string]string {
	t.Helper()
	families, err := met.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "awscni_") {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			out[f.GetName()+"{"+strings.Join(labels, ",")+"}"] = value(m)
		}
	}
	return out
}

func value(m *dto.Metric) string {
	switch {
	case m.GetSummary() != nil:
		return fmt.Sprintf("%d samples, sum %g", m.GetSummary().GetSampleCount(), m.GetSummary().GetSampleSum())
	case m.GetHistogram() != nil:
		return fmt.Sprintf("%d samples, sum %g", m.GetHistogram().GetSampleCount(), m.GetHistogram().GetSampleSum())
	}
	return fmt.Sprint(m.GetCounter().GetValue() + m.GetGauge().GetValue())
}

// TestReportOf pins the outside view of each event: log lines, metrics, the entries of
// /v1/events, /v1/failures and /v1/summary, and Kubernetes events.
func TestReportOf(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 2, 59, 48, 0, time.UTC)
	var out, log strings.Builder
	policy := warmpool.Policy{Cooldown: 30 * time.Second, WarmIP: 1, WarmPrefix: 1, WarmENI: 1, MinIP: 14}
	met := metrics.New(metrics.Options{})
	r := newRecorder(t.Context(), slog.New(logging.NewHandler(&log, slog.LevelDebug)), met, introspectserver.NewFeed(at), policy)
	before, missing, rows := series(t, met), eventTypes(t), recordedEvents()
	for _, row := range rows {
		delete(missing, fmt.Sprintf("%T", row.e))
		fmt.Fprintf(&out, "# %s\n", row.name)
		log.Reset()
		r.history = newHistory()
		r.lines.cooling, r.lines.grown, r.lines.used = nil, false, false
		r.record(at, row.e)
		for line := range strings.Lines(log.String()) {
			level, rest, _ := strings.Cut(line, `,"ts"`) // without the time and the caller
			_, rest, _ = strings.Cut(rest, `,"msg"`)
			fmt.Fprintf(&out, "log     %s,\"msg\"%s", level, rest)
		}
		after := series(t, met)
		for _, name := range slices.Sorted(maps.Keys(after)) {
			if after[name] != before[name] {
				fmt.Fprintf(&out, "metric  %s %s, was %s\n", name, after[name], before[name])
			}
		}
		before = after
		reports := []report{reportOf(row.e, at, policy)}
		if back, ok := row.e.(keeper.AddressReleased); ok && back.Reason == metrics.ReasonSetupNSFailed {
			reports = append(reports, addressReturned(back))
		}
		for _, p := range reports {
			if p.journal.Kind != "" {
				fmt.Fprintf(&out, "journal %s\n", strings.TrimPrefix(encoded(t, p.journal), `{"seq":0,"at":"0001-01-01T00:00:00Z",`))
			}
			if p.failure.Cause != "" {
				fmt.Fprintf(&out, "failure %s\n", strings.TrimPrefix(encoded(t, p.failure), `{"at":"0001-01-01T00:00:00Z",`))
			}
		}
		if h := encoded(t, []any{r.history.adds, r.history.dels, r.history.errors}); h != encoded(t, []any{newHistory().adds, newHistory().dels, newHistory().errors}) {
			fmt.Fprintf(&out, "summary %s\n", h)
		}
		for _, p := range reports {
			if p.notice.Reason != "" {
				fmt.Fprintf(&out, "notice  %+v\n", p.notice)
			}
		}
		if len(r.lines.cooling) > 0 || r.lines.grown || r.lines.used {
			fmt.Fprintf(&out, "pool    used %v, changed %v, %d cooling\n", r.lines.used, r.lines.grown, len(r.lines.cooling))
		}
	}
	for name := range missing {
		t.Errorf("no row has a %s", name)
	}
	golden.Check(t, "events.txt", []byte(out.String()))
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

type recordedEvent struct {
	name string
	e    keeper.Event
}

// recordedEvents returns events of each type.
func recordedEvents() []recordedEvent {
	single, prefix := []netip.Prefix{netip.MustParsePrefix("10.0.0.12/32")}, []netip.Prefix{netip.MustParsePrefix("10.0.0.16/28")}
	six := []netip.Prefix{netip.MustParsePrefix("fd00::/80")}
	fail := func(code cause.Code) error {
		return &keeper.Failure{Cause: code, Err: errors.New("api error UnauthorizedOperation: no")}
	}
	refused, unknown := fail(cause.EC2Unauthorized), errors.New("no such ENI")
	const took = 250 * time.Millisecond
	pod := ipam.Pod{Namespace: "shop", Name: "web-0"}
	web := ipam.Assignment{Pod: pod, Address: netip.MustParseAddr("10.0.0.12"), ENI: "eni-1", Card: 1, Device: 2}
	ended := web
	ended.Card = 0
	eni := ipam.ENI{ID: "eni-1", Card: 1, Device: 2, SubnetID: "subnet-1"}
	add := func(code cause.Code) keeper.Event {
		return keeper.AddFailed{
			Pod: pod, PodUID: "6f1c0d5e-0000-4000-8000-000000000001", Cause: code, Detail: "the detail", Transient: true, Took: took,
		}
	}
	op := func(id keeper.OpID, kind warmpool.PendingKind, why warmpool.Reason) keeper.Operation {
		return keeper.Operation{ID: id, Pending: warmpool.Pending{Kind: kind, ENI: "eni-1", Card: 1, Device: 2, SubnetID: "subnet-1"}, Reason: why}
	}
	failed := func(kind warmpool.PendingKind, err error) keeper.ActionFailed {
		return keeper.ActionFailed{Operation: op(9, kind, warmpool.WarmENI), Took: took, Err: err}
	}
	attach := op(1, warmpool.PendingAttach, warmpool.WaitingPods)
	attach.ENI, attach.IPs = "", 9
	assign, release := op(2, warmpool.PendingAssign, warmpool.WarmIP), op(3, warmpool.PendingRelease, warmpool.WarmIP)
	assign.Prefixes = 2
	release.CIDRs, release.SubnetID = single, ""
	late := failed(warmpool.PendingAttach, &keeper.Failure{Cause: cause.ENILinkMissing, Err: errors.New("link missing")})
	late.ENI, late.Waited = "", 100*time.Millisecond
	note := func(kind resync.NoteKind, text string) resync.Note {
		return resync.Note{Kind: kind, ENI: "eni-1", Count: 1, Text: text}
	}
	quarantined := note(resync.AddressesQuarantined, "the detail")
	quarantined.CIDR = single[0]
	book := func(ev ipam.Event, byReconcile bool) keeper.Event {
		return keeper.BookRefused{Event: ev, ByReconcile: byReconcile, Err: unknown}
	}
	warned := func(what keeper.Note) keeper.Event { return keeper.Noted{What: what, ENI: "eni-1", Err: refused} }
	backoff := func(scope, id string, left time.Duration, code cause.Code) keeper.Backoff {
		return keeper.Backoff{Scope: scope, ID: id, Until: time.Date(2026, 11, 21, 2, 59, 48, 0, time.UTC).Add(left), Cause: code}
	}
	return []recordedEvent{
		{"assigned", keeper.AddressAssigned{Assignment: web, Took: took}},
		{"released", keeper.AddressReleased{Assignment: web, Reason: metrics.ReasonPodDeleted}},
		{"released, taken back", keeper.AddressReleased{Assignment: web, Reason: keeper.ReasonTakenBack}},
		{"released, set-up failed", keeper.AddressReleased{Assignment: web, Reason: metrics.ReasonSetupNSFailed}},
		{"ADD failed, pool dry", add(cause.PoolDry)}, {"ADD failed, unreadable", add(cause.InvalidRequest)}, {"ADD failed, multi-NIC off", add(cause.MultiNICDisabled)},
		{"ADD failed, checkpoint", add(cause.CheckpointUnwritable)}, {"ADD failed, terminating", add(cause.DaemonTerminating)},
		{"ADD failed, branch", add(cause.BranchPending)}, {"ADD failed, policy agent", add(cause.PolicyAgentRefused)},
		{"DEL failed", keeper.DelFailed{Pod: pod, Cause: cause.Internal, Detail: "the detail", Err: errors.New("no"), Reason: metrics.ReasonPodDeleted}},
		{"DEL failed, checkpoint", keeper.DelFailed{Pod: pod, Cause: cause.CheckpointUnwritable, Detail: "the detail", Err: errors.New("no"), Reason: metrics.ReasonPodDeleted}},
		{"DEL unknown", keeper.DelUnknown{Pod: pod}},
		{"pool missed", keeper.PoolMissed{Pod: pod}},
		{"attach started", keeper.ActionStarted{Operation: attach}}, {"attach done", keeper.ActionDone{Operation: attach, Took: took, Waited: 100 * time.Millisecond}},
		{"attach late", late},
		{"attach refused", failed(warmpool.PendingAttach, fmt.Errorf("%w in subnet-1: %w", keeper.ErrCreate, refused))},
		{"attach limit", failed(warmpool.PendingAttach, fail(cause.ENIAttachLimit))}, {"attach not set up", failed(warmpool.PendingAttach, fail(cause.Internal))},
		{"assign started", keeper.ActionStarted{Operation: assign}}, {"assign failed", failed(warmpool.PendingAssign, fail(cause.SubnetFragmented))},
		{"release started", keeper.ActionStarted{Operation: release}}, {"release failed", failed(warmpool.PendingRelease, fail(cause.EC2Error))},
		{"detach failed", failed(warmpool.PendingDetach, fmt.Errorf("%w of ENI eni-1: %w", keeper.ErrFindAttachment, fail(cause.EC2Error)))},
		{"ENI attached", keeper.ENIAttached{ENI: eni, CIDRs: single}},
		{"ENI detached", keeper.ENIDetached{ID: "eni-1", Card: 1, Device: 2}},
		{"ENI unmanaged", keeper.ENIUnmanaged{Other: resync.Other{ID: "eni-1", Card: 1, Device: 2, Why: resync.NotManaged}}},
		{"ENI not used", keeper.ENIUnmanaged{Other: resync.Other{ID: "eni-1", Card: 1, Device: 2, Why: "an EFA"}}},
		{"ENI vanished", keeper.ENIVanished{ENI: "eni-1", Err: refused}},
		{"CIDRs added", keeper.CIDRsAdded{ENI: "eni-1", CIDRs: single}},
		{"CIDRs removed", keeper.CIDRsRemoved{ENI: "eni-1", CIDRs: prefix}},
		{"back-off of an ENI", keeper.BackoffStarted{Backoff: backoff("eni", "eni-1", took, cause.PoolFull)}},
		{"back-off of a subnet", keeper.BackoffStarted{Backoff: backoff("subnet-prefix", "subnet-1", took, cause.SubnetFragmented)}},
		{"back-off ended", keeper.BackoffEnded{Backoff: backoff("attach", "", -took, cause.EC2Throttled)}},
		{"EC2 refused an ENI", keeper.LimitChanged{Card: 0, Is: warmpool.Stated{Most: 2, OfType: 3, Retry: time.Unix(1_790_000_000, 0)}, Err: fail(cause.ENIAttachLimit)}},
		{"EC2 refused addresses", keeper.LimitChanged{Card: keeper.PerENI, Is: warmpool.Stated{Most: 5, OfType: 9, Retry: time.Unix(1_790_000_000, 0)}}},
		{"EC2 accepts an ENI again", keeper.LimitChanged{Card: 0, Was: warmpool.Stated{Most: 2, OfType: 3, Retry: time.Unix(1_790_000_000, 0)}}},
		{"subnet short", keeper.SubnetShort{Subnet: "subnet-1", ENI: "eni-1", Err: fail(cause.SubnetExhausted)}},
		{"subnet full", keeper.SubnetFull{Subnet: "subnet-1", Detail: "the detail"}},
		{"subnets read", keeper.SubnetsListed{}},
		{"subnets failed", keeper.SubnetsFailed{Err: refused}},
		{"max-pods", keeper.MaxPodsChanged{MaxPods: 737, Source: "node"}},
		{"targets", keeper.TargetsChanged{Was: keeper.Targets{WarmENI: 1, WarmIP: 5}, Is: keeper.Targets{WarmENI: 1, WarmIP: 8, MaxENI: 2}}},
		{"cordoned", keeper.SchedulingChanged{Cordoned: true}},
		{"schedulable", keeper.SchedulingChanged{}},
		{"VPC CIDRs", keeper.VPCCIDRsChanged{CIDRs: prefix}},
		{"quarantined", keeper.Quarantined{Note: quarantined}},
		{"back", keeper.Unquarantined{Note: note(resync.ENIBack, "the detail")}},
		{"out of sync", keeper.ReconcileNote{Note: note(resync.MetadataDiffers, "the detail")}},
		{"ENI removed", keeper.ReconcileNote{Note: note(resync.ENIRemoved, "the detail")}},
		{"addresses added", keeper.ReconcileNote{Note: note(resync.AddressesAdded, "")}},
		{"reconciled", keeper.Reconciled{Changes: 2}},
		{"reconcile failed", keeper.ReconcileFailed{Err: refused}},
		{"missed DEL", keeper.MissedDEL{Assignment: ended}},
		{"leaks found", keeper.LeaksFound{ENIs: 3}},
		{"leak deleted", keeper.Noted{What: keeper.LeakDeleted, ENI: "eni-1"}},
		{"sweep failed", keeper.SweepFailed{Err: refused}},
		{"checkpoint failed", keeper.CheckpointFailed{Err: errors.New("no space left")}},
		{"checkpoint written", keeper.CheckpointRecovered{}},
		{"connections deleted", keeper.FlowsDeleted{Addresses: 3, Entries: 12, Took: 14 * time.Millisecond}},
		{"connections deleted at the start", keeper.FlowsDeleted{Entries: 2, Took: 14 * time.Millisecond}},
		{"no connections to delete", keeper.FlowsDeleted{Addresses: 3, Took: 14 * time.Millisecond}},
		{"connections kept", keeper.FlowsKept{Entries: 7, Err: errors.New("delete connection tracking entries: operation not permitted")}},
		{"connections kept again", keeper.FlowsKept{Err: errors.New("delete connection tracking entries: operation not permitted"), Again: true}},
		{"planned", keeper.Planned{Plan: "warmpool.AttachENI"}},
		{"book, growth", book(ipam.AddCIDRs{CIDRs: single}, false)}, {"book, growth in prefixes", book(ipam.AttachENI{CIDRs: prefix}, false)},
		{"book, growth in IPv6", book(ipam.AttachENI{CIDRs: six}, false)}, {"book, shrinking", book(ipam.RemoveCIDRs{CIDRs: single}, false)}, {"book, detach", book(ipam.DetachENI{}, false)},
		{"book, reconcile", book(ipam.AddCIDRs{CIDRs: single}, true)}, {"book, reconcile in prefixes", book(ipam.AddCIDRs{CIDRs: prefix}, true)},
		{"book, reconcile removes", book(ipam.RemoveCIDRs{CIDRs: prefix}, true)}, {"book, reconcile detaches", book(ipam.DetachENI{}, true)},
		{"book, other", book(ipam.QuarantineENI{}, true)},
		{"book, hold", book(ipam.HoldCIDRs{}, false)},
		{"warned, failed attach kept", warned(keeper.FailedAttachKept)}, {"warned, failed attach not detached", warned(keeper.FailedAttachAttached)},
		{"warned, detached kept", warned(keeper.DetachedKept)}, {"warned, leak kept", warned(keeper.LeakKept)},
		{"warned, rules kept", warned(keeper.RulesKept)}, {"warned, not set up", warned(keeper.NotSetUp)}, {"warned, deletion refused", warned(keeper.DeleteRefused)},
		{"warned, other", warned("ENI not tagged")},
		{"freed", keeper.Noted{What: keeper.ENIFreed, ENI: "eni-1"}}, {"told", keeper.Noted{What: "ENI looked at", ENI: "eni-1"}},
		{"terminating", keeper.Terminating{}},
		{"ENIConfig used", keeper.ENIConfigUsed{Name: "az-a", Subnet: "subnet-1"}},
		{"ENIConfig failed", keeper.ENIConfigFailed{Name: "az-a", Err: errors.New("no subnet")}},
		{"groups changed", keeper.GroupsChanged{Groups: 2}},
		{"groups written", keeper.GroupsWritten{ENIs: 2}},
		{"groups failed", keeper.GroupsFailed{ENI: "eni-1", Err: refused}},
		{"delete-on-termination refused", keeper.ENIMayOutlive{ENI: "eni-1", Err: refused}},
		{"delete-on-termination refused again", keeper.ENIMayOutlive{ENI: "eni-1", Err: refused, Again: true}},
		{"pods expected", keeper.PodsExpected{Pods: 2}},
		{"trunk found", keeper.TrunkFound{ENI: eni}},
		{"trunk lost", keeper.TrunkLost{ENI: "eni-1"}},
		{"trunk given up", keeper.TrunkGivenUp{Why: "the detail"}},
	}
}
