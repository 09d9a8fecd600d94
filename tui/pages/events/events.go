package events

import (
	"strconv"
	"strings"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/show"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/pages/names"
	"cnictl/tui/theme"
)

// List is the newest state changes of a daemon, oldest first, at most so many as the
// daemon itself remembers.
type List struct {
	Items []introspect.Event
	after watch.EventsAfter
}

// After is where the next reading goes on.
func (e *List) After() watch.EventsAfter { return e.after }

// Take appends what was read. An answer from before what is here brings nothing new.
func (e *List) Take(doc *introspect.NodeEvents) {
	if doc == nil {
		return
	}
	same := doc.Epoch == e.after.Epoch
	if same && doc.Next < e.after.Next {
		return
	}
	for _, item := range doc.Items {
		if same && item.Seq <= e.after.Next && item.Kind != introspect.EventGap {
			continue
		}
		e.Items = append(e.Items, item)
	}
	if extra := len(e.Items) - introspect.MaxEvents; extra > 0 {
		e.Items = append([]introspect.Event(nil), e.Items[extra:]...)
	}
	e.after = watch.EventsAfter{Epoch: doc.Epoch, Next: doc.Next}
}

// Text says a state change in one line, without its time and kind.
func Text(e introspect.Event) string {
	out := Pieces(e)
	if len(out) == 0 {
		return e.Kind.Title()
	}
	return strings.Join(out, " ")
}

// Pieces is what a state change tells, one thing each.
func Pieces(e introspect.Event) []string {
	var out []string
	add := func(s string) {
		if s != "" {
			out = append(out, show.Safe(s))
		}
	}
	if e.Pod != nil {
		add(names.Pod(e.Pod.Namespace, e.Pod.Name))
	}
	if e.Address.IsValid() {
		add(e.Address.String())
	}
	if !strings.Contains(e.Message, e.ENIID) {
		add(e.ENIID) // a message that names it says it once
	}
	if e.ENIID == "" {
		add(e.SubnetID)
	}
	const few = 3
	for i, c := range e.CIDRs {
		if i == few {
			add("and " + strconv.Itoa(len(e.CIDRs)-few) + " more")
			break
		}
		add(c.String())
	}
	if e.Reason != "" && !strings.Contains(e.Message, e.Reason) {
		add("(" + e.Reason + ")")
	}
	add(e.Cause)
	add(e.Message)
	if e.Missed != nil {
		add(strconv.FormatUint(*e.Missed, 10) + " missed")
	}
	if e.DurationMS != nil {
		add((time.Duration(*e.DurationMS) * time.Millisecond).String())
	}
	return out
}

// Role is how a state change is shown.
func Role(k introspect.EventKind) theme.Role {
	switch k {
	case introspect.EventADDFailed, introspect.EventDELFailed, introspect.EventActionFailed, introspect.EventReconcileFailed,
		introspect.EventSubnetsFailed, introspect.EventSweepFailed, introspect.EventCheckpointFailed, introspect.EventENIConfigFailed, introspect.EventGroupsFailed:
		return theme.Bad
	case introspect.EventPoolMissed, introspect.EventENIVanished, introspect.EventBackoffStarted, introspect.EventSubnetShort,
		introspect.EventQuarantined, introspect.EventMissedDEL, introspect.EventTrunkLost, introspect.EventTrunkGivenUp,
		introspect.EventHostStateRepaired, introspect.EventTerminating, introspect.EventGap:
		return theme.Warn
	}
	return theme.Text
}

// Decision tells whether a change is of the pool itself: not the addresses that pods take
// and give back.
func Decision(k introspect.EventKind) bool {
	switch k {
	case introspect.EventAddressAssigned, introspect.EventAddressReleased, introspect.EventSubnetsRead, introspect.EventPodsExpected, introspect.EventMissedDEL:
		return false
	}
	return true
}
