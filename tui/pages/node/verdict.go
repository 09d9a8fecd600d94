package node

import (
	"strings"
	"time"

	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/store"
	"cnictl/doctor/causes/catalogue"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
	"cnictl/tui/show"
)

// verdict says above the panes what is worst, and the first thing to do about it.
func verdict(s draw.Style, width int, n *store.Node, now time.Time) []string {
	sheet := draw.NewSheet(s, width)
	worst, found := n.Worst()
	switch {
	case unreadable(n):
		role := pages.SeverityRole(n.Severity)
		words, _ := pages.StateOf(n, now)
		state, why, _ := strings.Cut(words, ": ")
		sheet.Item(pages.Sign(s, n.Severity), draw.T(role, state), draw.T(draw.Text, "  "+why), draw.T(draw.Faint, "  D: doctor"))
		return sheet.Lines()
	case !found:
		return nil
	}
	role := pages.SeverityRole(worst.Effect)
	text := worst.Message
	if waiting := pods(n, now); waiting != "" && worst.Name() != waitingCode {
		text = waiting + "; " + text
	}
	sheet.Item(pages.Sign(s, worst.Effect), draw.T(role, worst.Name()), draw.T(draw.Text, "  "+text))
	pages.Fix(sheet, worst.Name())
	return sheet.Lines()
}

// unreadable reports whether the worst of a node is that it could not be read, or not in full.
func unreadable(n *store.Node) bool {
	return n.State != document.StateLive && n.Error != nil && (n.Severity.Harms() || n.Severity == document.SeverityWarning)
}

// waitingCode is the doctor's code for pods that wait, which is what the verdict adds to a cause.
const waitingCode = catalogue.GroupObserved + "/add-waiting"

// pods says how many pods wait and for how long, "" if none.
func pods(n *store.Node, now time.Time) string {
	if n.Summary == nil || n.Summary.WaitingADDs == nil || *n.Summary.WaitingADDs == 0 {
		return ""
	}
	text := human.Plural(*n.Summary.WaitingADDs, "pod waits", "pods wait") + " for an address"
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
		if p.Effect == document.SeverityInfo || told(n, p.Name()) || unreadable(n) && p.Code == string(n.Error.Reason) {
			continue
		}
		role := pages.SeverityRole(p.Effect)
		sheet.Item(pages.Sign(sheet.Style(), p.Effect), draw.T(role, p.Name()), draw.T(draw.Text, " "+p.Message))
	}
}
