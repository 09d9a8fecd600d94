package ipamd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/internal/introspectserver"
	"cnictl/daemon/internal/metrics"
	"cnictl/daemon/internal/vpcapi"
	"cnictl/daemon/keeper"
	"cnictl/daemon/procedure"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

// recorder turns the keeper's events into log lines, metrics, the feed and the last
// failures. Only the owner's goroutine uses it.
type recorder struct {
	log      *slog.Logger
	metrics  *metrics.Metrics
	feed     *introspectserver.Feed
	failures *introspectserver.FailureLog
	running  map[keeper.OpID]func() // ends an action's part of the gauge
	history  history
	lines    poolLines
	notices  *notices // nil: there is no API server
	info     bool     // lines of that level are written
}

func newRecorder(ctx context.Context, log *slog.Logger, met *metrics.Metrics, feed *introspectserver.Feed, policy warmpool.Policy) *recorder {
	return &recorder{
		lines: newPoolLines(ctx, log, policy), info: log.Enabled(ctx, slog.LevelInfo),
		log: log, metrics: met, feed: feed, failures: introspectserver.NewFailureLog(),
		running: make(map[keeper.OpID]func()), history: newHistory(),
	}
}

// started tells the first event of a run: whoever follows the events sees by it where
// a new daemon began.
func (r *recorder) started(at time.Time, version string) {
	r.feed.Append(introspect.Event{At: at.UTC(), Kind: introspect.EventStarted, Message: version})
}

func (r *recorder) record(e keeper.Event) {
	r.count(e)
	r.remember(e)
	r.tell(e)
	r.write(e)
	r.lines.note(e)
	if r.notices != nil {
		r.notices.take(e)
	}
	if e.Kind == keeper.AddressReleased && e.Reason == metrics.ReasonSetupNSFailed {
		r.record(givenBack(e))
	}
}

// givenBack is the failure of the ADD whose address a DEL brings back because the plugin
// could not use it. The keeper counts that ADD as one that got its address.
func givenBack(e keeper.Event) keeper.Event {
	return keeper.Event{
		Kind: keeper.AddFailed, At: e.At, Pod: e.Pod, Address: e.Address, ENI: e.ENI, Device: e.Device,
		Cause: cause.PodNetworkSetup, Transient: true,
		Text: "the plugin gave " + e.Address.String() + " back, because it could not set up the pod's network: plugin.log says why",
	}
}

// afterAddress reports that an ADD failed which had got its address.
func afterAddress(c cause.Code) bool {
	switch c {
	case cause.PodNetworkSetup, cause.PolicyAgentUnreachable, cause.PolicyAgentRefused:
		return true
	}
	return false
}

// count keeps the metrics under the names that upstream has for them.
func (r *recorder) count(e keeper.Event) {
	switch e.Kind {
	case keeper.AddressAssigned:
		r.metrics.AddWaited(e.Took)
	case keeper.AddFailed:
		r.metrics.AddFailed(e.Cause)
	case keeper.PoolMissed:
		r.metrics.NoAddress()
	case keeper.ActionStarted:
		r.metrics.PlanAction(keeper.ActionName(e.Action), e.Reason)
		r.running[e.Op] = r.metrics.Action(actionName(e.Action))
	case keeper.ActionDone, keeper.ActionFailed:
		if done := r.running[e.Op]; done != nil {
			done()
			delete(r.running, e.Op)
		}
		if e.Kind == keeper.ActionFailed {
			for _, fn := range errorNames(e.Action, e.Cause) {
				r.metrics.InternalError(fn)
			}
			if fn := utilName(e.Action, e.Err); fn != "" {
				r.metrics.AWSUtilsError(fn, vpcapi.Code(e.Err))
			}
		}
		if e.Waited > 0 {
			r.metrics.APILatency(metrics.APIWaitForENI, e.Waited, vpcapi.Code(e.Err), e.Err)
		}
	case keeper.Warned:
		if fn := utilNames[e.Text]; fn != "" {
			r.metrics.AWSUtilsError(fn, vpcapi.Code(e.Err))
		}
		if fn := warnNames[e.Text]; fn != "" {
			r.metrics.InternalError(fn)
		}
	case keeper.BookRefused:
		if fn := refusedName(e); fn != "" {
			r.metrics.InternalError(fn)
		}
	case keeper.ReconcileNote:
		if fn := reconcileNames[e.Reason]; fn != "" {
			r.metrics.Reconciled(fn)
		}
	case keeper.ReconcileFailed:
		r.metrics.InternalError(metrics.FnReconcileGetENIs)
	}
}

// remember keeps what /v1/summary and /v1/failures tell.
func (r *recorder) remember(e keeper.Event) {
	h := &r.history
	switch e.Kind {
	case keeper.AddressAssigned:
		h.adds.Total++
	case keeper.AddressReleased, keeper.DelUnknown:
		h.dels.Total++
	case keeper.AddFailed:
		if !afterAddress(e.Cause) { // else its ADD was counted when it got its address
			h.adds.Total++
		}
		*h.adds.Failed++
		h.adds.Causes[string(e.Cause)]++
		h.note(e.At, "ADD", e.Cause, e.Text)
		r.fail(e)
	case keeper.DelFailed:
		h.dels.Total++
		*h.dels.Failed++
		h.dels.Causes[string(e.Cause)]++
		h.note(e.At, "DEL", e.Cause, e.Text)
	case keeper.ActionFailed:
		h.note(e.At, keeper.ActionName(e.Action), e.Cause, e.Err.Error())
	case keeper.ENIConfigFailed:
		h.note(e.At, "ENIConfig "+e.Text, e.Cause, e.Err.Error())
	case keeper.GroupsFailed:
		h.note(e.At, "security groups", e.Cause, e.Err.Error())
	case keeper.SubnetsFailed:
		h.note(e.At, "DescribeSubnets", e.Cause, e.Err.Error())
	case keeper.CheckpointFailed:
		h.note(e.At, "checkpoint", e.Cause, e.Err.Error())
	case keeper.BookRefused:
		h.note(e.At, "address book", e.Cause, e.Err.Error())
	case keeper.ReconcileFailed, keeper.SweepFailed:
		h.note(e.At, string(e.Kind), e.Cause, e.Err.Error())
	}
}

func (r *recorder) fail(e keeper.Event) {
	r.failures.Append(introspect.Failure{
		At: e.At, Pod: introspect.PodRef{Namespace: e.Pod.Namespace, Name: e.Pod.Name},
		Cause: string(e.Cause), Detail: e.Text, WaitedMS: e.Took.Milliseconds(), Transient: e.Transient,
	})
}

// told are the kinds that the journal keeps: changes of state.
var told = func() map[string]bool {
	kinds := make(map[string]bool)
	for _, k := range introspect.EventKinds() {
		kinds[string(k)] = true
	}
	return kinds
}()

// tell puts a change of state into the journal.
func (r *recorder) tell(e keeper.Event) {
	if !told[string(e.Kind)] {
		return
	}
	out := introspect.Event{
		At: e.At.UTC(), Kind: introspect.EventKind(e.Kind), Address: e.Address, ENIID: string(e.ENI), SubnetID: e.Subnet,
		CIDRs: e.CIDRs, Cause: string(e.Cause), Reason: e.Reason, Message: message(e),
	}
	if e.Pod.Name != "" {
		out.Pod = &introspect.PodRef{Namespace: e.Pod.Namespace, Name: e.Pod.Name}
	}
	if e.ENI != "" || e.Op != 0 {
		card, device := e.Card, e.Device
		out.Card, out.Device = &card, &device
	}
	if e.Took > 0 {
		ms := e.Took.Milliseconds()
		out.DurationMS = &ms
	}
	r.feed.Append(out)
}

// message says an event in one sentence.
func message(e keeper.Event) string {
	text := e.Text
	if e.Op != 0 {
		text = keeper.ActionName(e.Action)
		if e.IPs > 0 {
			text += fmt.Sprintf(", %d addresses", e.IPs)
		}
		if e.Prefixes > 0 {
			text += fmt.Sprintf(", %d prefixes", e.Prefixes)
		}
	}
	if e.Err != nil {
		text = strings.TrimPrefix(text+": "+e.Err.Error(), ": ")
	}
	return bounded(text)
}

// write logs an event. A line that upstream has for it begins with upstream's
// text; the members are ours.
func (r *recorder) write(e keeper.Event) {
	switch e.Kind {
	case keeper.AddressAssigned:
		r.log.Info("address assigned", slog.String(logline.KeyIP, e.Address.String()), slog.String(logline.KeyENI, string(e.ENI)),
			slog.String(logline.KeyPod, e.Pod.Name), slog.String(logline.KeyNamespace, e.Pod.Namespace), slog.Duration(logline.KeyDuration, e.Took))
	case keeper.AddressReleased:
		r.writeReleased(e)
	case keeper.AddFailed:
		write := r.log.Error
		if e.Cause == cause.DaemonTerminating || e.Cause == cause.DaemonStarting {
			write = r.log.Warn // the runtime tries again: a rollout is no alarm
		}
		if text := failedAddLine(e.Cause, e.Text); text != "" {
			write(text, slog.String(logline.KeyCause, string(e.Cause)), slog.String(logline.KeyDetail, e.Text),
				slog.String(logline.KeyPod, e.Pod.Name), slog.String(logline.KeyNamespace, e.Pod.Namespace), slog.Duration(logline.KeyDuration, e.Took))
		}
	case keeper.DelUnknown:
		r.log.Info(textUnknownSandbox, slog.String(logline.KeyPod, e.Pod.Name), slog.String(logline.KeyNamespace, e.Pod.Namespace))
	case keeper.DelFailed:
		text := "address not released"
		if e.Cause == cause.CheckpointUnwritable {
			text = fmt.Sprintf(textStoreFailed, e.Text)
		}
		//nolint:sloglint // upstream's line, or ours
		r.log.Error(text, slog.String(logline.KeyCause, string(e.Cause)), slog.String(logline.KeyDetail, e.Text),
			slog.String(logline.KeyPod, e.Pod.Name), slog.String(logline.KeyNamespace, e.Pod.Namespace))
	case keeper.ActionStarted, keeper.ActionDone, keeper.ActionFailed:
		r.writeAction(e)
	case keeper.NodeChanged:
		r.writeNode(e)
	case keeper.VPCCIDRsChanged:
		r.log.Info("VPC CIDRs changed", slog.Any(logline.KeyCIDRs, cidrTexts(e.CIDRs)))
	case keeper.CheckpointFailed:
		r.log.Error("checkpoint not written", slog.String(logline.KeyCause, string(e.Cause)), slog.Any(logline.KeyError, e.Err))
	case keeper.CheckpointMended:
		r.log.Info("checkpoint written again")
	case keeper.Planned:
		r.log.Debug("pool plan", slog.String(logline.KeyDetail, e.Text))
	case keeper.BookRefused:
		r.log.Error("address book refused an event", slog.String(logline.KeyEvent, e.Text), slog.Any(logline.KeyError, e.Err))
	case keeper.Terminating:
		r.log.Info("AWS CNI is terminating, no more pool changes")
	case keeper.ENIConfigUsed, keeper.ENIConfigFailed, keeper.GroupsChanged, keeper.GroupsWritten, keeper.GroupsFailed,
		keeper.PodsExpected, keeper.TrunkFound, keeper.TrunkLost, keeper.TrunkGivenUp:
		r.writeMode(e)
	default:
		r.writeENI(e)
	}
}

// failedAddLine is the log line of a failed ADD. Alarms count textNoAddress, so only a pool
// that has no address to give logs it, whatever keeps it from growing. "": the line was
// written where the cause was found.
func failedAddLine(code cause.Code, detail string) string {
	switch code {
	case cause.PoolDry, cause.PoolFull, cause.AddressesCooling, cause.SubnetExhausted, cause.SubnetFragmented, cause.NoUsableSubnet,
		cause.EC2Throttled, cause.EC2Unauthorized, cause.EC2Error, cause.ENIAttachLimit, cause.ENILinkMissing,
		cause.ENIConfigMissing, cause.NodeUnschedulable, cause.ProvisioningDisabled:
		return textNoAddress
	case cause.InvalidRequest:
		return fmt.Sprintf(textNoKey, detail)
	case cause.MultiNICDisabled:
		return fmt.Sprintf(textMultiNICOff, detail)
	case cause.CheckpointUnwritable:
		return fmt.Sprintf(textStoreFailed, detail)
	case cause.PodNetworkSetup:
		return "address given back: the pod's network could not be set up"
	case cause.TrunkMissing, cause.TrunkLinkMissing, cause.BranchPending, cause.BranchInvalid, cause.PodUnknown, cause.PodAnnotation,
		cause.PolicyAgentUnreachable, cause.PolicyAgentRefused:
		return ""
	}
	return "no address given: " + code.Title()
}

// writeMode logs what an optional mode brings about.
func (r *recorder) writeMode(e keeper.Event) {
	eni, why := slog.String(logline.KeyENI, string(e.ENI)), slog.Any(logline.KeyError, e.Err)
	code := slog.String(logline.KeyCause, string(e.Cause))
	switch e.Kind {
	case keeper.ENIConfigUsed:
		r.log.Info("ENIConfig used for new ENIs", slog.String(logline.KeyENIConfig, e.Text), slog.String(logline.KeySubnet, e.Subnet))
	case keeper.ENIConfigFailed:
		r.log.Error("ENIConfig not usable, no ENI is created until it is", slog.String(logline.KeyENIConfig, e.Text), code, why)
	case keeper.GroupsChanged:
		r.log.Info("security groups of the primary ENI changed", slog.Int(logline.KeyCount, e.Count))
	case keeper.GroupsWritten:
		r.log.Info("security groups of ENIs set to those of the primary ENI", slog.Int(logline.KeyCount, e.Count))
	case keeper.GroupsFailed:
		r.log.Warn("security groups of an ENI not written, will be retried", eni, code, why)
	case keeper.PodsExpected:
		r.log.Debug("pods without an address are bound to the node", slog.Int(logline.KeyCount, e.Count))
	case keeper.TrunkFound:
		r.log.Info("trunk ENI found", eni, slog.Int(logline.KeyDevice, e.Device))
	case keeper.TrunkLost:
		r.log.Error("trunk ENI lost: pods with branch ENIs on it are cut off", eni)
	case keeper.TrunkGivenUp:
		r.log.Warn("trunk ENI given up", slog.String(logline.KeyDetail, e.Text))
	}
}

// writeReleased logs the end of an allocation. Upstream has two lines for it, the
// pod's at info and the address's at debug; ours is one, at info.
func (r *recorder) writeReleased(e keeper.Event) {
	if !r.info {
		return
	}
	ip, text := e.Address.String(), "address released"
	if rest := r.lines.cooldown; rest > 0 && e.Reason != keeper.ReasonTakenBack {
		text = fmt.Sprintf(textCooling, ip, rest, e.At.Add(rest).UTC().Format(time.RFC3339))
	}
	//nolint:sloglint // upstream's line
	r.log.Info(text, slog.String(logline.KeyIP, ip), slog.String(logline.KeyENI, string(e.ENI)),
		slog.String(logline.KeyPod, e.Pod.Name), slog.String(logline.KeyNamespace, e.Pod.Namespace), slog.String(logline.KeyReason, e.Reason))
}

// writeNode logs max-pods with the targets, and whether the node is cordoned.
func (r *recorder) writeNode(e keeper.Event) {
	p, source := r.lines.policy, slog.String(logline.KeySource, e.Reason)
	switch {
	case e.Text == keeper.MaxPodsChanged:
		//nolint:sloglint // upstream's line
		r.log.Info(fmt.Sprintf(textTargets, e.Count, p.WarmIP, p.WarmPrefix, p.WarmENI, p.MinIP), slog.Int(logline.KeyCount, e.Count), source)
	case e.Text == keeper.Cordoned && !p.ManageUnschedulable:
		r.log.Info(textNonSchedulable, source)
	default:
		r.log.Info("node changed", slog.String(logline.KeyDetail, e.Text), source)
	}
}

// low are the reasons to grow without a target of addresses; upstream then says
// that the pool is too low.
var low = map[string]bool{
	string(warmpool.WaitingPods): true, string(warmpool.WarmENI): true, string(warmpool.WarmPrefix): true, string(warmpool.PoolEmpty): true,
	string(warmpool.ExpectedPods): true,
}

func (r *recorder) writeAction(e keeper.Event) {
	name := slog.String(logline.KeyAction, keeper.ActionName(e.Action))
	eni := slog.String(logline.KeyENI, string(e.ENI))
	switch e.Kind {
	case keeper.ActionStarted:
		text := "pool action started"
		if low[e.Reason] {
			text = fmt.Sprintf(textPoolLow, e.Card)
		}
		//nolint:sloglint // ours or upstream's line
		r.log.Info(text, name, eni, slog.Int(logline.KeyNetworkCard, e.Card), slog.Int(logline.KeyDevice, e.Device),
			slog.Int(logline.KeyAddresses, e.IPs), slog.Int(logline.KeyPrefixes, e.Prefixes), slog.String(logline.KeyReason, e.Reason))
	case keeper.ActionDone:
		r.log.Info("pool action done", name, eni, slog.Duration(logline.KeyDuration, e.Took))
	case keeper.ActionFailed:
		//nolint:sloglint // ours or upstream's line
		r.log.Warn(failedText(e), name, eni, slog.String(logline.KeyCause, string(e.Cause)),
			slog.Any(logline.KeyError, e.Err), slog.Duration(logline.KeyDuration, e.Took))
	}
}

// failedText is upstream's line of a failed action.
func failedText(e keeper.Event) string {
	switch {
	case errors.Is(e.Err, procedure.ErrCreate):
		return fmt.Sprintf(textCreateFailed, e.Err, e.Subnet)
	case e.Action == warmpool.PendingAssign:
		return fmt.Sprintf(textAllocateFailed, e.ENI, e.Err)
	case e.Action == warmpool.PendingDetach:
		return fmt.Sprintf(textDetachFailed, e.ENI, e.Err)
	}
	return "pool action failed"
}

// writeENI logs what happens to network interfaces and what the outside shows of them.
func (r *recorder) writeENI(e keeper.Event) {
	eni := slog.String(logline.KeyENI, string(e.ENI))
	switch e.Kind {
	case keeper.ENIAttached:
		r.log.Info(fmt.Sprintf(textENISetUp, e.ENI), eni, slog.Int(logline.KeyDevice, e.Device)) //nolint:sloglint // upstream's line
	case keeper.ENIVanished:
		r.log.Error("ENI deleted by something else, its addresses are not assigned to other pods", eni)
	case keeper.ENIUnmanaged:
		r.writeUnmanaged(e)
	case keeper.SubnetShort:
		why := slog.String(logline.KeyDetail, e.Text)
		if e.Err != nil {
			why = slog.Any(logline.KeyError, e.Err)
		}
		r.log.Warn(textSubnetShort, slog.String(logline.KeySubnet, e.Subnet), eni, why)
	case keeper.SubnetsFailed:
		r.log.Warn("subnets not described", slog.String(logline.KeyCause, string(e.Cause)), slog.Any(logline.KeyError, e.Err))
	case keeper.Quarantined, keeper.Unquarantined, keeper.ReconcileNote:
		//nolint:sloglint // ours or upstream's line
		r.log.Warn(differenceText(e), eni, slog.String(logline.KeyReason, e.Reason),
			slog.Any(logline.KeyCIDRs, cidrTexts(e.CIDRs)), slog.String(logline.KeyDetail, e.Text))
	case keeper.Reconciled:
		r.log.Info(textReconciled, slog.Int(logline.KeyCount, e.Count))
	case keeper.ReconcileFailed:
		r.log.Warn("pool not compared with what is attached", slog.String(logline.KeyCause, string(e.Cause)), slog.Any(logline.KeyError, e.Err))
	case keeper.MissedDEL:
		r.log.Warn("allocation released: its pod no longer has a link", slog.String(logline.KeyIP, e.Address.String()), eni,
			slog.String(logline.KeyPod, e.Pod.Name), slog.String(logline.KeyNamespace, e.Pod.Namespace))
	case keeper.LeaksFound:
		r.log.Info(fmt.Sprintf(textLeaked, e.Count), slog.Int(logline.KeyCount, e.Count)) //nolint:sloglint // upstream's line
	case keeper.SweepFailed:
		r.log.Warn("leaked ENIs not removed", slog.String(logline.KeyCause, string(e.Cause)), slog.Any(logline.KeyError, e.Err))
	case keeper.Warned:
		text := e.Text
		switch {
		case kept[e.Text]:
			text = fmt.Sprintf(textDeleteFailed, e.ENI, e.Err)
		case e.Text == keeper.FailedAttachAttached:
			text = fmt.Sprintf(textDetachFailed, e.ENI, e.Err)
		}
		//nolint:sloglint // upstream's line, or one of the procedures' constant texts
		r.log.Warn(text, eni, slog.Any(logline.KeyError, e.Err))
	case keeper.LeakDeleted, keeper.Told:
		if e.Text == keeper.ENIFreed {
			r.log.Info(textFreed+string(e.ENI), eni) //nolint:sloglint // upstream's line, which people search for
			return
		}
		r.log.Info(e.Text, eni) //nolint:sloglint // one of the procedures' constant texts
	}
}

// kept are the tasks' texts of ENIs that could not be deleted.
var kept = map[string]bool{keeper.FailedAttachKept: true, keeper.DetachedKept: true, procedure.LeakKept: true}

// writeUnmanaged logs an ENI that is left alone. Only what is not the CNI's to manage is
// "unmanaged" to upstream.
func (r *recorder) writeUnmanaged(e keeper.Event) {
	why := []any{
		slog.String(logline.KeyENI, string(e.ENI)), slog.Int(logline.KeyNetworkCard, e.Card), slog.Int(logline.KeyDevice, e.Device),
		slog.String(logline.KeyReason, e.Text),
	}
	if e.Text != resync.NotManaged {
		r.log.Info("ENI occupies a slot and is not used", why...)
		return
	}
	r.log.Info(fmt.Sprintf(textMarkingUnmanaged, e.ENI), why...) //nolint:sloglint // upstream's line
	if r.lines.debug {
		r.log.Debug(fmt.Sprintf(textSkipUnmanaged, e.ENI), why...) //nolint:sloglint // upstream's line
	}
}

// differenceText is upstream's line of a difference between the pool and the outside.
func differenceText(e keeper.Event) string {
	switch resync.NoteKind(e.Reason) {
	case resync.MetadataDiffers:
		return textOutOfSync
	case resync.ENIRemoved:
		return fmt.Sprintf(textDetachedENI, e.ENI)
	}
	return "pool differs from what is attached"
}

// history is what is remembered for people: counters since the start and the last
// failures, repeated ones folded together.
type history struct {
	adds, dels introspect.RequestCounts
	errors     []introspect.LastError // newest first
}

func newHistory() history {
	return history{
		errors: []introspect.LastError{},
		adds:   introspect.RequestCounts{Failed: new(0), Causes: map[string]int{}},
		dels:   introspect.RequestCounts{Failed: new(0), Causes: map[string]int{}},
	}
}

// clone is a copy that the owner's goroutine no longer changes.
func (h *history) clone() history {
	out := *h
	out.errors = slices.Clone(h.errors)
	out.adds.Failed, out.dels.Failed = new(*h.adds.Failed), new(*h.dels.Failed)
	out.adds.Causes, out.dels.Causes = maps.Clone(h.adds.Causes), maps.Clone(h.dels.Causes)
	return out
}

// note puts an error first; one of the same operation and cause moves up and counts.
func (h *history) note(at time.Time, operation string, code cause.Code, text string) {
	e := introspect.LastError{At: at.UTC(), Operation: operation, Cause: string(code), Message: bounded(text), Count: 1}
	same := func(o introspect.LastError) bool { return o.Operation == e.Operation && o.Cause == e.Cause }
	if i := slices.IndexFunc(h.errors, same); i >= 0 {
		e.Count += h.errors[i].Count
		h.errors = slices.Delete(h.errors, i, i+1)
	}
	h.errors = slices.Insert(h.errors, 0, e)
	h.errors = h.errors[:min(len(h.errors), introspect.MaxLastErrors)]
}

// bounded cuts a message of the outside to what a person reads.
func bounded(message string) string {
	const limit = 300
	if len(message) <= limit {
		return message
	}
	return strings.ToValidUTF8(message[:limit], "") + "…"
}
