package inventory

import (
	"fmt"
	"strconv"
	"strings"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
)

// EventSeverity is error for failures, warning for other trouble, and "" for the rest.
func EventSeverity(k introspect.EventKind) document.Severity {
	switch k {
	case introspect.EventADDFailed, introspect.EventDELFailed, introspect.EventActionFailed, introspect.EventReconcileFailed,
		introspect.EventSubnetsFailed, introspect.EventSweepFailed, introspect.EventCheckpointFailed, introspect.EventENIConfigFailed,
		introspect.EventGroupsFailed:
		return document.SeverityError
	case introspect.EventPoolMissed, introspect.EventENIVanished, introspect.EventENIMayOutlive, introspect.EventBackoffStarted,
		introspect.EventSubnetShort,
		introspect.EventQuarantined, introspect.EventMissedDEL, introspect.EventTrunkLost, introspect.EventTrunkGivenUp,
		introspect.EventFlowsKept, introspect.EventGap,
		introspect.EventLimitStated, introspect.EventSettingProblem, introspect.EventBackendChanged, introspect.EventHostStateRepaired:
		return document.SeverityWarning
	}
	return ""
}

// EventWarning reports that something went wrong.
func EventWarning(k introspect.EventKind) bool { return EventSeverity(k) != "" }

// EventText is an event as a sentence, as in documents: without its pod, which they name separately.
func EventText(e introspect.Event) string {
	e.Pod = nil
	parts := parts(e)
	if n := len(e.CIDRs); n > 0 {
		parts = append(parts, human.Plural(n, "CIDR", "CIDRs"))
	}
	return sentence(e, append(parts, outcome(e)...))
}

// EventPieces are the parts of an event's text, including its pod and its CIDRs, without repetition.
func EventPieces(e introspect.Event) []string {
	if e.Reason != "" && strings.Contains(e.Message, e.Reason) {
		e.Reason = ""
	}
	if e.ENIID != "" {
		e.SubnetID = "" // implied by the ENI
		if strings.Contains(e.Message, e.ENIID) {
			e.ENIID = ""
		}
	}
	pieces := parts(e)
	const few = 3
	for _, c := range e.CIDRs[:min(len(e.CIDRs), few)] {
		pieces = append(pieces, c.String())
	}
	if more := len(e.CIDRs) - few; more > 0 {
		pieces = append(pieces, "and "+strconv.Itoa(more)+" more")
	}
	return append(pieces, outcome(e)...)
}

// EventLine joins EventPieces into one line.
func EventLine(e introspect.Event) string { return sentence(e, EventPieces(e)) }

// parts returns the objects and the texts of an event.
func parts(e introspect.Event) []string {
	var all []string
	if e.Pod != nil && e.Pod.Name != "" {
		all = append(all, strings.TrimPrefix(e.Pod.Namespace+"/"+e.Pod.Name, "/"))
	}
	if e.Address.IsValid() {
		all = append(all, e.Address.String())
	}
	for _, part := range []string{e.ENIID, e.SubnetID, e.Cause, e.Reason, e.Message} {
		if part != "" {
			all = append(all, part)
		}
	}
	return all
}

// outcome says how long an event took, and what is missing.
func outcome(e introspect.Event) []string {
	var all []string
	if e.DurationMS != nil {
		all = append(all, "in "+human.Milliseconds(*e.DurationMS))
	}
	if e.Missed != nil {
		all = append(all, fmt.Sprintf("%d missing", *e.Missed))
	}
	return all
}

func sentence(e introspect.Event, parts []string) string {
	if len(parts) == 0 {
		return e.Kind.Title()
	}
	return strings.Join(parts, " ")
}
