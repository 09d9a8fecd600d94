package ipamd

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/config"
	"cnictl/daemon/internal/metrics"
	"cnictl/daemon/internal/vpcapi"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
	"cnictl/daemon/notice"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

// report is every outside effect of one keeper event. Zero members have no effect.
type report struct {
	log     line
	debug   line               // an additional line
	count   func(*recorder)    // metrics and totals
	journal introspect.Event   // of /v1/events
	err     lastError          // of /v1/summary
	failure introspect.Failure // of /v1/failures
	notice  notice.Event       // for Kubernetes; a notice about a Node is about this node
	pool    poolChange
	cools   netip.Addr // an address whose cooldown begins
}

// line is a log line. If upstream has one, it begins with upstream's text; the attributes are ours.
type line struct {
	level slog.Level
	text  string
	attrs []slog.Attr
}

func debugLine(text string, attrs ...slog.Attr) line { return line{slog.LevelDebug, text, attrs} }
func infoLine(text string, attrs ...slog.Attr) line  { return line{slog.LevelInfo, text, attrs} }
func warnLine(text string, attrs ...slog.Attr) line  { return line{slog.LevelWarn, text, attrs} }
func errorLine(text string, attrs ...slog.Attr) line { return line{slog.LevelError, text, attrs} }

// lastError is what /v1/summary shows of a failure.
type lastError struct {
	operation string
	code      cause.Code
	text      string
}

// reportOf has one case for each type of event. All outside effects of an event follow from it.
func reportOf(event keeper.Event, at time.Time, policy warmpool.Policy) report {
	switch e := event.(type) {
	case keeper.AddressAssigned:
		journal := addressEntry(introspect.EventAddressAssigned, e.Assignment)
		journal.DurationMS = milliseconds(e.Took)
		return report{
			log: infoLine("address assigned", ipAttr(e.Address), eniAttr(e.ENI), slog.String(logline.KeyPod, e.Pod.Name),
				slog.String(logline.KeyNamespace, e.Pod.Namespace), slog.Duration(logline.KeyDuration, e.Took)),
			count:   func(r *recorder) { r.metrics.AddWaited(e.Took); r.history.adds.Total++ },
			journal: journal,
			pool:    poolUsed,
		}
	case keeper.AddressReleased:
		return released(e, at, policy)
	case keeper.AddFailed:
		return addFailed(e)
	case keeper.DelFailed:
		text := "address not released"
		if e.Cause == cause.CheckpointUnwritable {
			text = fmt.Sprintf(textStoreFailed, e.Detail)
		}
		return report{
			log: errorLine(text, causeAttr(e.Cause), slog.String(logline.KeyDetail, e.Detail),
				slog.String(logline.KeyPod, e.Pod.Name), slog.String(logline.KeyNamespace, e.Pod.Namespace)),
			count: func(r *recorder) { r.history.dels.Total++; failed(r.history.dels, e.Cause) },
			journal: introspect.Event{
				Kind: introspect.EventDELFailed, Pod: podRef(e.Pod), Cause: string(e.Cause), Reason: e.Reason, Message: sentence(e.Detail, e.Err),
			},
			err: lastError{"DEL", e.Cause, e.Detail},
		}
	case keeper.DelUnknown:
		return report{
			log:   infoLine(textUnknownSandbox, slog.String(logline.KeyPod, e.Pod.Name), slog.String(logline.KeyNamespace, e.Pod.Namespace)),
			count: func(r *recorder) { r.history.dels.Total++ },
		}
	case keeper.PoolMissed:
		return report{
			count:   func(r *recorder) { r.metrics.NoAddress() },
			journal: introspect.Event{Kind: introspect.EventPoolMissed, Pod: podRef(e.Pod)},
			pool:    poolChanged,
		}
	case keeper.MissedDEL:
		return report{
			log: warnLine("allocation released: its pod no longer has a link", ipAttr(e.Address), eniAttr(e.ENI),
				slog.String(logline.KeyPod, e.Pod.Name), slog.String(logline.KeyNamespace, e.Pod.Namespace)),
			journal: addressEntry(introspect.EventMissedDEL, e.Assignment),
			pool:    poolUsed,
			cools:   e.Address,
		}

	case keeper.Planned:
		return report{log: debugLine("pool plan", slog.String(logline.KeyDetail, e.Plan))}
	case keeper.ActionStarted:
		return actionStarted(e.Operation)
	case keeper.ActionDone:
		return report{
			log:     infoLine("pool action done", actionAttr(e.Operation), eniAttr(e.ENI), slog.Duration(logline.KeyDuration, e.Took)),
			count:   func(r *recorder) { r.actionEnded(e.ID, e.Waited, nil) },
			journal: actionEntry(introspect.EventActionDone, e.Operation, e.Took, nil),
		}
	case keeper.ActionFailed:
		return actionFailed(e)
	case keeper.ENIAttached:
		return report{
			log: infoLine(fmt.Sprintf(textENISetUp, e.ENI.ID), eniAttr(e.ENI.ID), slog.Int(logline.KeyDevice, e.ENI.Device)),
			journal: onENI(introspect.Event{Kind: introspect.EventENIAttached, SubnetID: e.ENI.SubnetID, CIDRs: e.CIDRs},
				e.ENI.ID, e.ENI.Card, e.ENI.Device),
			pool: poolChanged,
		}
	case keeper.ENIDetached:
		return report{journal: onENI(introspect.Event{Kind: introspect.EventENIDetached}, e.ID, e.Card, e.Device), pool: poolChanged}
	case keeper.ENIUnmanaged:
		return unmanaged(e.Other)
	case keeper.ENIVanished:
		return report{
			log:     errorLine("ENI deleted by something else, its addresses are not assigned to other pods", eniAttr(e.ENI)),
			journal: onENI(introspect.Event{Kind: introspect.EventENIVanished, Message: sentence("", e.Err)}, e.ENI, 0, 0),
		}
	case keeper.CIDRsAdded:
		return report{journal: onENI(introspect.Event{Kind: introspect.EventCIDRsAdded, CIDRs: e.CIDRs}, e.ENI, 0, 0), pool: poolChanged}
	case keeper.CIDRsRemoved:
		return report{journal: onENI(introspect.Event{Kind: introspect.EventCIDRsRemoved, CIDRs: e.CIDRs}, e.ENI, 0, 0), pool: poolChanged}
	case keeper.BackoffStarted:
		return report{journal: backoffEntry(introspect.EventBackoffStarted, e.Backoff, at)}
	case keeper.BackoffEnded:
		return report{journal: backoffEntry(introspect.EventBackoffEnded, e.Backoff, at)}
	case keeper.LimitChanged:
		return limitChanged(e)
	case keeper.SubnetShort:
		return subnetShort(e.Subnet, e.ENI, keeper.CauseOf(e.Err), e.Err.Error(), errAttr(e.Err))
	case keeper.SubnetFull:
		return subnetShort(e.Subnet, "", cause.SubnetExhausted, e.Detail, slog.String(logline.KeyDetail, e.Detail))
	case keeper.SubnetsListed:
		return report{
			journal: introspect.Event{Kind: introspect.EventSubnetsRead},
			count:   func(r *recorder) { r.subnets.note(at, e.Subnets) },
		}
	case keeper.SubnetsFailed:
		out := failureOf(introspect.EventSubnetsFailed, "DescribeSubnets", keeper.CauseOf(e.Err), e.Err)
		out.log = warnLine("subnets not described", causeAttr(out.err.code), errAttr(e.Err))
		out.notice = notice.SubnetExclusionUnknown(thisNode, "any subnet of the node's availability zone", e.Err.Error())
		return out
	case keeper.BookRefused:
		return report{
			log: errorLine("address book rejected an event", slog.String(logline.KeyEvent, fmt.Sprintf("%T", e.Event)), errAttr(e.Err)),
			count: func(r *recorder) {
				if fn := refusedName(e); fn != "" {
					r.metrics.InternalError(fn)
				}
			},
			err: lastError{"address book", cause.Internal, e.Err.Error()},
		}
	case keeper.CheckpointFailed:
		out := failureOf(introspect.EventCheckpointFailed, "checkpoint", cause.CheckpointUnwritable, e.Err)
		out.log = errorLine("checkpoint not written", causeAttr(out.err.code), errAttr(e.Err))
		out.notice = nodeNotice(out.err.code, e.Err.Error())
		return out
	case keeper.CheckpointRecovered:
		return report{log: infoLine("checkpoint written again"), journal: introspect.Event{Kind: introspect.EventCheckpointRecovered}}
	case keeper.FlowsDeleted:
		return flowsDeleted(e)
	case keeper.FlowsKept:
		return flowsKept(e)
	case keeper.Terminating:
		return report{log: infoLine("AWS CNI is terminating, no more pool changes"), journal: introspect.Event{Kind: introspect.EventTerminating}}
	case keeper.Noted:
		return noted(e)

	case keeper.SchedulingChanged:
		return schedulingChanged(e.Cordoned, policy)
	case keeper.TargetsChanged:
		return targetsChanged(e)
	case keeper.MaxPodsChanged:
		return report{
			log: infoLine(fmt.Sprintf(textTargets, e.MaxPods, policy.WarmIP, policy.WarmPrefix, policy.WarmENI, policy.MinIP),
				slog.Int(logline.KeyCount, e.MaxPods), slog.String(logline.KeySource, e.Source)),
			journal: introspect.Event{Kind: introspect.EventNodeChanged, Reason: e.Source, Message: "max-pods"},
		}
	case keeper.VPCCIDRsChanged:
		return report{
			log:     infoLine("VPC CIDRs changed", slog.Any(logline.KeyCIDRs, cidrTexts(e.CIDRs))),
			journal: introspect.Event{Kind: introspect.EventVPCCIDRsChanged, CIDRs: e.CIDRs},
		}
	case keeper.Quarantined:
		return difference(introspect.EventQuarantined, e.Note)
	case keeper.Unquarantined:
		return difference(introspect.EventUnquarantined, e.Note)
	case keeper.ReconcileNote:
		return difference("", e.Note)
	case keeper.Reconciled:
		return report{
			log:     infoLine(textReconciled, slog.Int(logline.KeyCount, e.Changes)),
			journal: introspect.Event{Kind: introspect.EventReconciled}, pool: poolChanged,
		}
	case keeper.ReconcileFailed:
		out := failureOf(introspect.EventReconcileFailed, string(introspect.EventReconcileFailed), keeper.CauseOf(e.Err), e.Err)
		out.log = warnLine("pool not reconciled with the attached ENIs", causeAttr(out.err.code), errAttr(e.Err))
		out.count = func(r *recorder) { r.metrics.InternalError(metrics.FnReconcileGetENIs) }
		return out
	case keeper.LeaksFound:
		return report{log: infoLine(fmt.Sprintf(textLeaked, e.ENIs), slog.Int(logline.KeyCount, e.ENIs))}
	case keeper.SweepFailed:
		out := failureOf(introspect.EventSweepFailed, string(introspect.EventSweepFailed), keeper.CauseOf(e.Err), e.Err)
		out.log = warnLine("leaked ENIs not removed", causeAttr(out.err.code), errAttr(e.Err))
		return out

	case keeper.ENIConfigUsed:
		return report{
			log:     infoLine("ENIConfig used for new ENIs", slog.String(logline.KeyENIConfig, e.Name), slog.String(logline.KeySubnet, e.Subnet)),
			journal: introspect.Event{Kind: introspect.EventENIConfigUsed, SubnetID: e.Subnet, Message: sentence(e.Name, nil)},
		}
	case keeper.ENIConfigFailed:
		out := failureOf(introspect.EventENIConfigFailed, "ENIConfig "+e.Name, cause.ENIConfigMissing, e.Err)
		out.log = errorLine("ENIConfig not usable, no ENI is created until it is",
			slog.String(logline.KeyENIConfig, e.Name), causeAttr(out.err.code), errAttr(e.Err))
		out.journal.Message = sentence(e.Name, e.Err)
		out.notice = nodeNotice(out.err.code, e.Err.Error())
		return out
	case keeper.GroupsChanged:
		return report{
			log:     infoLine("security groups of the primary ENI changed", slog.Int(logline.KeyCount, e.Groups)),
			journal: introspect.Event{Kind: introspect.EventGroupsChanged},
		}
	case keeper.GroupsWritten:
		return report{
			log:     infoLine("security groups of ENIs set to those of the primary ENI", slog.Int(logline.KeyCount, e.ENIs)),
			journal: introspect.Event{Kind: introspect.EventGroupsWritten},
		}
	case keeper.GroupsFailed:
		out := failureOf(introspect.EventGroupsFailed, "security groups", keeper.CauseOf(e.Err), e.Err)
		out.log = warnLine("security groups of an ENI not written, will be retried", eniAttr(e.ENI), causeAttr(out.err.code), errAttr(e.Err))
		out.journal = onENI(out.journal, e.ENI, 0, 0)
		return out
	case keeper.ENIMayOutlive:
		out := failureOf(introspect.EventENIMayOutlive, "delete-on-termination", keeper.CauseOf(e.Err), e.Err)
		out.log = warnLine("ENI may outlive its instance, will retry", eniAttr(e.ENI), causeAttr(out.err.code), errAttr(e.Err))
		if out.journal = onENI(out.journal, e.ENI, 0, 0); e.Again {
			out.journal = introspect.Event{}
		}
		return out
	case keeper.PodsExpected:
		return report{
			log:     debugLine("pods without an address are bound to the node", slog.Int(logline.KeyCount, e.Pods)),
			journal: introspect.Event{Kind: introspect.EventPodsExpected},
		}
	case keeper.TrunkFound:
		return report{
			log:     infoLine("trunk ENI found", eniAttr(e.ENI.ID), slog.Int(logline.KeyDevice, e.ENI.Device)),
			journal: onENI(introspect.Event{Kind: introspect.EventTrunkFound}, e.ENI.ID, e.ENI.Card, e.ENI.Device),
		}
	case keeper.TrunkLost:
		return report{
			log:     errorLine("trunk ENI lost: pods with branch ENIs on it are cut off", eniAttr(e.ENI)),
			journal: onENI(introspect.Event{Kind: introspect.EventTrunkLost}, e.ENI, 0, 0),
		}
	case keeper.TrunkGivenUp:
		return report{
			log:     warnLine("stopped waiting for the trunk ENI", slog.String(logline.KeyDetail, e.Why)),
			journal: introspect.Event{Kind: introspect.EventTrunkGivenUp, Message: sentence(e.Why, nil)},
			notice:  nodeNotice(cause.TrunkMissing, e.Why),
		}
	}
	return report{}
}

// released reports the end of an allocation. Upstream logs two lines, one about the pod at info
// and one about the address at debug; we log one, at info.
func released(e keeper.AddressReleased, at time.Time, policy warmpool.Policy) report {
	journal := addressEntry(introspect.EventAddressReleased, e.Assignment)
	journal.Reason = e.Reason
	out := report{count: func(r *recorder) { r.history.dels.Total++ }, journal: journal, pool: poolUsed}
	text := "address released"
	if e.Reason != keeper.ReasonTakenBack {
		out.cools = e.Address
		if rest := policy.Cooldown; rest > 0 {
			text = fmt.Sprintf(textCooling, e.Address, rest, at.Add(rest).UTC().Format(time.RFC3339))
		}
	}
	out.log = infoLine(text, ipAttr(e.Address), eniAttr(e.ENI),
		slog.String(logline.KeyPod, e.Pod.Name), slog.String(logline.KeyNamespace, e.Pod.Namespace), slog.String(logline.KeyReason, e.Reason))
	return out
}

// flowsDeleted reports a pass over connection tracking. Most find nothing, and are only counted.
func flowsDeleted(e keeper.FlowsDeleted) report {
	out := report{count: func(r *recorder) { r.metrics.FlowsDeleted(e.Entries, nil) }}
	if e.Entries == 0 {
		return out
	}
	of := fmt.Sprintf("of %d released addresses", e.Addresses)
	if e.Addresses == 0 {
		of = "of addresses without a pod, at the start"
	}
	out.log = infoLine("connection tracking entries deleted", slog.Int(logline.KeyCount, e.Entries), slog.String(logline.KeyDetail, of), slog.Duration(logline.KeyDuration, e.Took))
	out.journal = introspect.Event{
		Kind: introspect.EventFlowsDeleted, Message: sentence(fmt.Sprintf("%d entries %s", e.Entries, of), nil), DurationMS: milliseconds(e.Took),
	}
	return out
}

// flowsKept reports a failed pass, in words only after one that worked: where the kernel lacks
// ctnetlink, all fail.
func flowsKept(e keeper.FlowsKept) report {
	out := report{count: func(r *recorder) { r.metrics.FlowsDeleted(e.Entries, e.Err) }}
	if !e.Again {
		out.log = warnLine("connection tracking entries of released addresses not deleted: after its cooldown, an address may get traffic that is meant for its last pod", errAttr(e.Err))
		out.journal = introspect.Event{Kind: introspect.EventFlowsKept, Message: sentence("", e.Err)}
	}
	return out
}

// addressReturned reports the failed ADD whose address a DEL returns because the plugin could not use
// it. The keeper counted that ADD as one that got its address.
func addressReturned(e keeper.AddressReleased) report {
	out := addFailed(keeper.AddFailed{
		Pod: e.Pod, Cause: cause.PodNetworkSetup, Transient: true,
		Detail: "the plugin returned " + e.Address.String() + " because it could not set up the pod's network; see plugin.log",
	})
	out.journal.Address = e.Address
	out.journal = onENI(out.journal, e.ENI, 0, e.Device)
	return out
}

func addFailed(e keeper.AddFailed) report {
	out := report{
		count: func(r *recorder) {
			r.metrics.AddFailed(e.Cause)
			if !afterAddress(e.Cause) { // otherwise its ADD was counted when it got its address
				r.history.adds.Total++
			}
			failed(r.history.adds, e.Cause)
		},
		journal: introspect.Event{
			Kind: introspect.EventADDFailed, Pod: podRef(e.Pod), Cause: string(e.Cause), Message: sentence(e.Detail, nil), DurationMS: milliseconds(e.Took),
		},
		err: lastError{"ADD", e.Cause, e.Detail},
		failure: introspect.Failure{
			Pod:   introspect.PodRef{Namespace: e.Pod.Namespace, Name: e.Pod.Name},
			Cause: string(e.Cause), Detail: e.Detail, WaitedMS: e.Took.Milliseconds(), Transient: e.Transient,
		},
		notice: notice.For(e.Cause, notice.Ref{Kind: "Pod", Namespace: e.Pod.Namespace, Name: e.Pod.Name, UID: objectUID(e.PodUID)}, "", e.Detail),
	}
	if text := failedAddLine(e.Cause, e.Detail); text != "" {
		out.log = errorLine(text, causeAttr(e.Cause), slog.String(logline.KeyDetail, e.Detail), slog.String(logline.KeyPod, e.Pod.Name),
			slog.String(logline.KeyNamespace, e.Pod.Namespace), slog.Duration(logline.KeyDuration, e.Took))
		if e.Cause == cause.DaemonTerminating || e.Cause == cause.DaemonStarting {
			out.log.level = slog.LevelWarn // the runtime retries: a rollout is no reason for an alarm
		}
	}
	return out
}

// afterAddress reports whether the failed ADD had already got its address.
func afterAddress(c cause.Code) bool {
	switch c {
	case cause.PodNetworkSetup, cause.PolicyAgentUnreachable, cause.PolicyAgentRefused:
		return true
	}
	return false
}

// failedAddLine is the log line of a failed ADD. Alarms count textNoAddress, so it is logged only
// if the pool has no address to give, whatever keeps the pool from growing. It is "" if the line
// was already logged where the cause was found.
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
		return "address returned: pod network setup failed"
	case cause.TrunkMissing, cause.TrunkLinkMissing, cause.BranchPending, cause.BranchInvalid, cause.BranchConflict, cause.PodUnknown, cause.PodAnnotation,
		cause.PolicyAgentUnreachable, cause.PolicyAgentRefused:
		return ""
	}
	return "no address assigned: " + code.Title()
}

// actionStarted reports the start of a pool change. Upstream logs that the pool is too low if it
// grows for any reason other than a target of addresses.
func actionStarted(op keeper.Operation) report {
	text := "pool action started"
	switch op.Reason {
	case warmpool.WaitingPods, warmpool.WarmENI, warmpool.WarmPrefix, warmpool.PoolEmpty, warmpool.ExpectedPods:
		text = fmt.Sprintf(textPoolLow, op.Card)
	}
	return report{
		log: infoLine(text, actionAttr(op), eniAttr(op.ENI),
			slog.Int(logline.KeyNetworkCard, op.Card), slog.Int(logline.KeyDevice, op.Device),
			slog.Int(logline.KeyAddresses, op.IPs), slog.Int(logline.KeyPrefixes, op.Prefixes), slog.String(logline.KeyReason, string(op.Reason))),
		count: func(r *recorder) {
			r.metrics.PlanAction(keeper.ActionName(op.Kind), string(op.Reason))
			r.running[op.ID] = r.metrics.Action(actionName(op.Kind))
		},
		journal: actionEntry(introspect.EventActionStarted, op, 0, nil),
	}
}

func actionFailed(e keeper.ActionFailed) report {
	kind, code := e.Kind, keeper.CauseOf(e.Err)
	text := "pool action failed"
	switch {
	case errors.Is(e.Err, keeper.ErrCreate):
		text = fmt.Sprintf(textCreateFailed, e.Err, e.SubnetID)
	case kind == warmpool.PendingAssign:
		text = fmt.Sprintf(textAllocateFailed, e.ENI, e.Err)
	case kind == warmpool.PendingDetach:
		text = fmt.Sprintf(textDetachFailed, e.ENI, e.Err)
	}
	out := report{
		log: warnLine(text, actionAttr(e.Operation), eniAttr(e.ENI), causeAttr(code), errAttr(e.Err), slog.Duration(logline.KeyDuration, e.Took)),
		count: func(r *recorder) {
			for _, fn := range errorNames(kind, code) {
				r.metrics.InternalError(fn)
			}
			if kind == warmpool.PendingDetach && errors.Is(e.Err, keeper.ErrFindAttachment) {
				r.metrics.AWSUtilsError(metrics.FnGetENIAttachmentID, vpcapi.Code(e.Err))
			}
			r.actionEnded(e.ID, e.Waited, e.Err)
		},
		journal: actionEntry(introspect.EventActionFailed, e.Operation, e.Took, e.Err),
		err:     lastError{keeper.ActionName(kind), code, e.Err.Error()},
	}
	out.journal.Cause = string(code)
	switch code { // these need a person; others have their own event or pass
	case cause.ENIAttachLimit, cause.ENILinkMissing, cause.NoUsableSubnet, cause.SubnetFragmented:
		out.notice = nodeNotice(code, e.Err.Error())
	}
	return out
}

// limitChanged reports a limit that EC2 stated, or states no longer.
func limitChanged(e keeper.LimitChanged) report {
	what, code, action, card := "network interfaces", cause.ENIAttachLimit, "AttachNetworkInterface", new(e.Card)
	if e.Card == keeper.PerENI {
		what, code, action, card = "secondary IPs or prefixes on a network interface", cause.PoolFull, "AssignPrivateIpAddresses", nil
	}
	if !e.Is.There() {
		text := fmt.Sprintf("EC2 accepts more than %d %s again, the instance type takes %d", e.Was.Most, what, e.Was.OfType)
		return report{
			log:     infoLine("limit of EC2 no longer below the instance type's", slog.String(logline.KeyDetail, text)),
			journal: introspect.Event{Kind: introspect.EventLimitLifted, Card: card, Cause: string(code), Message: text},
		}
	}
	text := fmt.Sprintf("EC2 refused more than %d %s, although the instance type takes %d: the pool goes by %d, and tries one more after %v",
		e.Is.Most, what, e.Is.OfType, e.Is.Most, warmpool.StatedLimitRetry)
	out := report{
		log:     warnLine("limit of EC2 below the instance type's", causeAttr(code), slog.String(logline.KeyDetail, text)),
		journal: introspect.Event{Kind: introspect.EventLimitStated, Card: card, Cause: string(code), Message: sentence(text, e.Err)},
		notice:  notice.InstanceLimit(thisNode, action, sentence(text, e.Err)),
	}
	if e.Err != nil {
		out.log.attrs = append(out.log.attrs, errAttr(e.Err))
	}
	return out
}

// settingProblem reports a setting that cannot take effect on this node. It is already logged.
func settingProblem(p config.Problem) report {
	return report{
		journal: introspect.Event{Kind: introspect.EventSettingProblem, Reason: p.Variable, Message: sentence(p.String(), nil)},
		notice:  notice.Setting(thisNode, p.Variable, p.String()),
	}
}

// subnetShort reports a subnet that has no addresses, or no /28s, left.
func subnetShort(subnet string, eni ipam.ENIID, code cause.Code, text string, why slog.Attr) report {
	return report{
		log: warnLine(textSubnetShort, slog.String(logline.KeySubnet, subnet), eniAttr(eni), why),
		journal: onENI(introspect.Event{
			Kind: introspect.EventSubnetShort, SubnetID: subnet, Cause: string(code), Message: sentence(text, nil),
		}, eni, 0, 0),
		notice: nodeNotice(code, text),
	}
}

// unmanaged reports an ENI that is left alone. Upstream calls only those "unmanaged" that the
// CNI must not manage.
func unmanaged(o resync.Other) report {
	why := []slog.Attr{
		eniAttr(o.ID), slog.Int(logline.KeyNetworkCard, o.Card), slog.Int(logline.KeyDevice, o.Device), slog.String(logline.KeyReason, o.Why),
	}
	if o.Why != resync.NotManaged {
		return report{log: infoLine("ENI occupies a slot and is not used", why...)}
	}
	return report{log: infoLine(fmt.Sprintf(textMarkingUnmanaged, o.ID), why...), debug: debugLine(fmt.Sprintf(textSkipUnmanaged, o.ID), why...)}
}

// targetsChanged names the targets that changed, as variables.
func targetsChanged(e keeper.TargetsChanged) report {
	var text []string
	for _, t := range []struct {
		name    string
		was, is int
	}{
		{"WARM_ENI_TARGET", e.Was.WarmENI, e.Is.WarmENI}, {"WARM_IP_TARGET", e.Was.WarmIP, e.Is.WarmIP}, {"MINIMUM_IP_TARGET", e.Was.MinIP, e.Is.MinIP},
		{"WARM_PREFIX_TARGET", e.Was.WarmPrefix, e.Is.WarmPrefix}, {"MAX_ENI", e.Was.MaxENI, e.Is.MaxENI},
	} {
		if t.was != t.is {
			text = append(text, fmt.Sprintf("%s=%d", t.name, t.is))
		}
	}
	detail := strings.Join(text, " ")
	return report{
		log:     infoLine("targets changed by labels of the Node", slog.String(logline.KeyDetail, detail)),
		journal: introspect.Event{Kind: introspect.EventNodeChanged, Reason: "labels", Message: detail},
		pool:    poolChanged,
	}
}

func schedulingChanged(cordoned bool, policy warmpool.Policy) report {
	state := "schedulable"
	if cordoned {
		state = "cordoned"
	}
	out := report{journal: introspect.Event{Kind: introspect.EventNodeChanged, Message: state}}
	source := slog.String(logline.KeySource, "")
	if out.log = infoLine("node changed", slog.String(logline.KeyDetail, state), source); cordoned && !policy.ManageUnschedulable {
		out.log = infoLine(textNonSchedulable, source)
	}
	return out
}

// difference reports a difference between the pool and the outside; upstream has lines for some.
// With kind "" it is not kept in the journal.
func difference(kind introspect.EventKind, n resync.Note) report {
	text := "pool differs from what is attached"
	switch n.Kind {
	case resync.MetadataDiffers:
		text = textOutOfSync
	case resync.ENIRemoved:
		text = fmt.Sprintf(textDetachedENI, n.ENI)
	}
	var cidrs []netip.Prefix
	if n.CIDR.IsValid() {
		cidrs = []netip.Prefix{n.CIDR}
	}
	out := report{log: warnLine(text, eniAttr(n.ENI), slog.String(logline.KeyReason, string(n.Kind)),
		slog.Any(logline.KeyCIDRs, cidrTexts(cidrs)), slog.String(logline.KeyDetail, n.Text))}
	if fn := reconcileNames[n.Kind]; fn != "" {
		out.count = func(r *recorder) { r.metrics.Reconciled(fn) }
	}
	if kind != "" {
		out.pool = poolChanged
		out.journal = onENI(introspect.Event{Kind: kind, CIDRs: cidrs, Reason: string(n.Kind), Message: sentence(n.Text, nil)}, n.ENI, 0, 0)
	}
	return out
}

// notes are the notes of tasks that need more than a log line of ours.
var notes = map[keeper.Note]struct {
	line           string // upstream's, formatted with the ENI and the error
	util, internal string // upstream's metric names for failures of EC2, or of the node
	journal        introspect.EventKind
}{
	keeper.ENIFreed:             {line: textFreed},
	keeper.FailedAttachKept:     {line: textDeleteFailed, util: metrics.FnAllocENIDelete},
	keeper.FailedAttachAttached: {line: textDetachFailed, util: metrics.FnENICleanup},
	keeper.DetachedKept:         {line: textDeleteFailed, util: metrics.FnFreeENIDelete},
	keeper.LeakKept:             {line: textDeleteFailed, util: metrics.FnCleanUpLeakedENIsDel},
	keeper.LeakDeleted:          {journal: introspect.EventLeakDeleted},
	keeper.RulesKept:            {internal: metrics.FnFreeENIDeleteRules},
	keeper.NotSetUp:             {internal: metrics.FnENIReconcileAdd},
}

func noted(e keeper.Noted) report {
	more := notes[e.What]
	text, args := string(e.What), []any{e.ENI}
	out := report{log: infoLine(text, eniAttr(e.ENI))}
	if e.Err != nil {
		out.log, args = warnLine(text, eniAttr(e.ENI), errAttr(e.Err)), append(args, e.Err)
	}
	if more.line != "" {
		out.log.text = fmt.Sprintf(more.line, args...)
	}
	if more.util != "" {
		out.count = func(r *recorder) { r.metrics.AWSUtilsError(more.util, vpcapi.Code(e.Err)) }
	}
	if more.internal != "" {
		out.count = func(r *recorder) { r.metrics.InternalError(more.internal) }
	}
	if more.journal != "" {
		out.journal = onENI(introspect.Event{Kind: more.journal, Message: text}, e.ENI, 0, 0)
	}
	return out
}

// failureOf is the common part of all failure reports.
func failureOf(kind introspect.EventKind, operation string, code cause.Code, err error) report {
	return report{
		journal: introspect.Event{Kind: kind, Cause: string(code), Message: sentence("", err)},
		err:     lastError{operation, code, err.Error()},
	}
}

// thisNode is a placeholder for the node in a report.
var thisNode = notice.Ref{Kind: "Node"}

func nodeNotice(code cause.Code, detail string) notice.Event {
	return notice.For(code, thisNode, "", detail)
}

func addressEntry(kind introspect.EventKind, a ipam.Assignment) introspect.Event {
	return onENI(introspect.Event{Kind: kind, Pod: podRef(a.Pod), Address: a.Address}, a.ENI, a.Card, a.Device)
}

// onENI adds the ENI that a journal entry is about.
func onENI(e introspect.Event, id ipam.ENIID, card, device int) introspect.Event {
	if id != "" {
		e.ENIID, e.Card, e.Device = string(id), &card, &device
	}
	return e
}

func actionEntry(kind introspect.EventKind, op keeper.Operation, took time.Duration, err error) introspect.Event {
	text := keeper.ActionName(op.Kind)
	if op.IPs > 0 {
		text += fmt.Sprintf(", %d addresses", op.IPs)
	}
	if op.Prefixes > 0 {
		text += fmt.Sprintf(", %d prefixes", op.Prefixes)
	}
	return introspect.Event{
		Kind: kind, ENIID: string(op.ENI), Card: &op.Card, Device: &op.Device, SubnetID: op.SubnetID, CIDRs: op.CIDRs,
		Reason: string(op.Reason), Message: sentence(text, err), DurationMS: milliseconds(took),
	}
}

func backoffEntry(kind introspect.EventKind, b keeper.Backoff, at time.Time) introspect.Event {
	e := introspect.Event{Kind: kind, Cause: string(b.Cause), Reason: b.Scope, DurationMS: milliseconds(b.Until.Sub(at))}
	switch b.Scope {
	case "eni":
		return onENI(e, ipam.ENIID(b.ID), 0, 0)
	case "subnet", "subnet-prefix":
		e.SubnetID = b.ID
	}
	return e
}

func podRef(p ipam.Pod) *introspect.PodRef {
	if p.Name == "" {
		return nil
	}
	return &introspect.PodRef{Namespace: p.Namespace, Name: p.Name}
}

// milliseconds is a duration in ms; nil if it took no time or is not over.
func milliseconds(d time.Duration) *int64 {
	if d <= 0 {
		return nil
	}
	return new(d.Milliseconds())
}

// sentence is the message of a journal entry.
func sentence(text string, err error) string {
	if err != nil {
		text = strings.TrimPrefix(text+": "+err.Error(), ": ")
	}
	return bounded(text)
}

func ipAttr(a netip.Addr) slog.Attr    { return slog.String(logline.KeyIP, a.String()) }
func eniAttr(id ipam.ENIID) slog.Attr  { return slog.String(logline.KeyENI, string(id)) }
func causeAttr(c cause.Code) slog.Attr { return slog.String(logline.KeyCause, string(c)) }
func errAttr(err error) slog.Attr      { return slog.Any(logline.KeyError, err) }
func actionAttr(op keeper.Operation) slog.Attr {
	return slog.String(logline.KeyAction, keeper.ActionName(op.Kind))
}
