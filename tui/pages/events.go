package pages

import (
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/draw"
)

// Events holds the newest state changes of a daemon, oldest first, at most as many as the
// daemon itself keeps.
type Events struct {
	Items []introspect.Event
	after watch.EventsAfter
}

// After returns where the next reading continues.
func (e *Events) After() watch.EventsAfter { return e.after }

// Take appends what was read. It ignores an answer older than the last.
func (e *Events) Take(doc *introspect.NodeEvents) {
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

// EventRole returns the role in which a state change is shown.
func EventRole(k introspect.EventKind) draw.Role {
	switch inventory.EventSeverity(k) {
	case document.SeverityError:
		return draw.Bad
	case document.SeverityWarning:
		return draw.Warn
	}
	return draw.Text
}
