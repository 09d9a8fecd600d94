package node

import (
	"strconv"
	"strings"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/doctor/causes/catalogue"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
	"cnictl/tui/show"
)

func goals(sheet *draw.Sheet, n *store.Node) {
	sheet.Head("TARGETS", "")
	for _, t := range targetsOf(*n.Summary) {
		sheet.Row(t.Name, 19, draw.T(draw.Text, pad(t.Want, 5)), draw.T(t.Role, t.Word), draw.T(draw.Faint, between(t.Word, t.Have)))
	}
	if m := n.Summary.Targets.MaxENI; m != nil {
		want, word, have := show.Int(m), "", ""
		if *m == 0 {
			word = "not set"
		}
		if n.ENIs != nil {
			have = human.Plural(*n.ENIs, "ENI", "ENIs")
		}
		sheet.Row("MAX_ENI", 19, draw.T(draw.Text, pad(want, 5)), draw.T(draw.Faint, word+between(word, have)))
	}
	if cool := n.Summary.CooldownSeconds; cool != nil {
		sheet.Row("IP_COOLDOWN_PERIOD", 19, draw.T(draw.Text, strconv.FormatFloat(*cool, 'f', -1, 64)+" s"))
	}
}

func pad(s string, n int) string { return s + strings.Repeat(" ", max(n-len(s), 1)) }

// between returns a count, separated from the word before it.
func between(word, have string) string {
	if have == "" {
		return ""
	}
	if word == "" {
		return have
	}
	return ", " + have
}

// plan writes what the daemon will do next.
func (m *Model) plan(c pages.Context, sheet *draw.Sheet, n *store.Node) {
	if n.Source == document.SourceV1 {
		return
	}
	age := pages.Age(m.docs.Read[watch.WantPlan], c.Now, 3*pages.Pace(c, n))
	sheet.Head("NEXT", age)
	p := m.docs.Last.Plan
	if p == nil {
		sheet.Add(draw.T(draw.Faint, pages.Missing(c, &m.docs, watch.WantPlan, n, "The plan")))
		return
	}
	if e, failed := m.docs.Error[watch.WantPlan]; failed {
		sheet.Add(draw.T(draw.Stale, "Refresh failed: "+pages.Reason(e)))
	}
	before := sheet.Len()
	for _, a := range p.Actions {
		text := a.Text
		if a.Until != nil {
			text += ", next in " + show.Until(a.Until, c.Now)
		}
		sheet.Item(draw.T(draw.Accent, ">"), draw.T(draw.Text, text))
		if a.Title != "" && !told(n, a.Reason) {
			sheet.Item(draw.T(draw.Text, ""), draw.T(draw.Faint, "because "+a.Title))
		}
	}
	for _, b := range p.Blocked {
		if told(n, b.Cause) {
			continue
		}
		sheet.Item(draw.T(draw.Bad, "!"), draw.T(draw.Bad, "blocked "+catalogue.Named(b.Cause)),
			draw.T(draw.Text, onCard(n, b.Card)+": "+b.Message))
	}
	for _, u := range p.Unmet {
		why := ""
		if !told(n, u.Reason) {
			why = ": " + first(u.Title, u.Reason)
		}
		sheet.Item(pages.Sign(sheet.Style(), document.SeverityWarning), draw.T(draw.Warn, u.Target+" "+strconv.Itoa(u.Wanted)+" cannot be met"),
			draw.T(draw.Text, onCard(n, u.Card)+", "+strconv.Itoa(u.Possible)+" possible"+why))
	}
	if len(p.Blocked) > 0 && sheet.Len() == before {
		sheet.Add(draw.T(draw.Text, "Nothing: no address can come until the problem above is solved."))
	}
	if len(p.Actions)+len(p.Blocked)+len(p.Unmet) == 0 {
		role, word, why := nothing(*n.Summary)
		sheet.Add(draw.T(role, word+": "), draw.T(draw.Text, why))
	}
}

// nothing explains why no change is planned, as far as the daemon's summary shows.
func nothing(s introspect.Summary) (role draw.Role, word, why string) {
	if len(s.Operations) > 0 {
		return draw.Info, "Nothing more", "operations in progress must finish first."
	}
	for _, t := range targetsOf(s) {
		if t.Role == draw.Warn {
			return draw.Info, "Nothing now", t.Name + " is " + t.Word + "; no change planned."
		}
	}
	return draw.Good, "Nothing", "all targets are met."
}

func onCard(n *store.Node, card int) string {
	if n.Summary == nil || len(n.Summary.Cards) < 2 {
		return ""
	}
	return " on card " + strconv.Itoa(card)
}

// clocks writes what is in progress and what delays the pool, counting down.
func clocks(sheet *draw.Sheet, n *store.Node, now time.Time) {
	if waiting := pods(n, now); waiting != "" && !told(n, waitingCode) {
		sheet.Head("WAITING", "")
		sheet.Add(draw.T(draw.Bad, waiting))
	}
	if len(n.Summary.Operations) > 0 {
		sheet.Head("IN PROGRESS", "")
	}
	for _, o := range n.Summary.Operations {
		what := o.Kind
		if o.Prefixes > 0 {
			what += " " + human.Plural(o.Prefixes, "prefix", "prefixes")
		}
		if o.Addresses > 0 {
			what += " " + human.Plural(o.Addresses, "address", "addresses")
		}
		if o.ENIID != "" {
			what += " on " + o.ENIID
		}
		sheet.Item(draw.T(draw.Accent, ">"), draw.T(draw.Text, what+onCard(n, o.Card)),
			draw.T(draw.Faint, " for "+show.Since(o.StartedAt, now)+", "+show.OrUnknown(o.Reason)))
	}
	var held []introspect.Backoff
	for _, b := range n.Summary.Backoffs {
		if b.Until.After(now) && !told(n, b.Cause) {
			held = append(held, b)
		}
	}
	if len(held) == 0 {
		return
	}
	sheet.Head("BACKING OFF", "")
	for _, b := range held {
		sheet.Item(pages.Sign(sheet.Style(), document.SeverityWarning), draw.T(draw.Text, b.Object()),
			draw.T(draw.Warn, ", retry in "+show.Until(&b.Until, now)), draw.T(draw.Faint, "  "+catalogue.Named(b.Cause)+titled(b.Cause)))
	}
}

func titled(code string) string {
	if t := cause.Code(code).Title(); t != "" {
		return ": " + t
	}
	return ""
}
