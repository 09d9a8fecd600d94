package node

import (
	"strings"
	"time"

	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
	"cnictl/doctor/causes/catalogue"
	"cnictl/tui/draw"
	"cnictl/tui/pages/reading"
	"cnictl/tui/show"
)

// verdict says above the panes what is worst, and the first thing to do about it. With room, it also
// counts the other fixes.
func verdict(s draw.Style, width int, n *store.Node, now time.Time, room bool) []string {
	worst, found := n.Worst()
	if !found {
		return nil
	}
	sheet := draw.NewSheet(s, width)
	role := reading.SeverityRole(worst.Effect)
	text := worst.Message
	if waiting := pods(n, now); waiting != "" && worst.Name() != waitingCode {
		text = waiting + "; " + text
	}
	sheet.Item(draw.T(role, worst.Effect.Sign()), draw.T(role, worst.Name()), draw.T(draw.Text, "  "+text))
	if e, ok := catalogue.Lookup(worst.Name()); ok && len(e.Fixes) > 0 {
		fix := e.Fixes[0]
		more := "  D: doctor"
		if len(e.Fixes) > 1 && room {
			more = "  D: doctor, " + show.Plural(len(e.Fixes)-1, "more fix", "more fixes")
		}
		sheet.Item(draw.T(draw.Good, s.Pick("→", ">")), draw.T(draw.Good, "fix"), draw.T(draw.Text, "  "+fix.Text), draw.T(draw.Faint, more))
	}
	return sheet.Lines()
}

// waitingCode is the doctor's code for pods that wait, which is what the verdict adds to a cause.
const waitingCode = catalogue.GroupObserved + "/add-waiting"

// pods says how many pods wait and for how long, "" if none.
func pods(n *store.Node, now time.Time) string {
	if n.Summary == nil || n.Summary.WaitingADDs == nil || *n.Summary.WaitingADDs == 0 {
		return ""
	}
	text := show.Plural(*n.Summary.WaitingADDs, "pod waits", "pods wait") + " for an address"
	if n.Summary.WaitingSince != nil {
		text += " for " + show.Since(n.Summary.WaitingSince, now)
	}
	return text
}

// told reports whether the verdict already says a problem: the same cause, or what merely follows
// from one.
func told(n *store.Node, code string) bool {
	worst, found := n.Worst()
	if !found {
		return false
	}
	name := catalogue.Named(code)
	cause := !strings.HasPrefix(worst.Name(), catalogue.GroupObserved+"/")
	return name == worst.Name() || cause && strings.HasPrefix(name, catalogue.GroupObserved+"/")
}

// problems writes what else is wrong.
func problems(sheet *draw.Sheet, n *store.Node) {
	for _, p := range n.Problems {
		if p.Effect == document.SeverityInfo || told(n, p.Name()) {
			continue
		}
		role := reading.SeverityRole(p.Effect)
		sheet.Item(draw.T(role, p.Effect.Sign()), draw.T(role, p.Name()), draw.T(draw.Text, " "+p.Message))
	}
}
