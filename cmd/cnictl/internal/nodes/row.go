package nodes

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/show"
	"cnictl/daemon/fleet/store"
)

// unread stands in every cell of a node that could not be read.
const unread = "?"

// Row is a node in cells.
type Row struct {
	Assigned, Cooling, Free, Limit int // sums over cards; Limit 0: not known

	Type, ENIs, Used, AssignedText, CoolingText, FreeText, LimitText string
	Warm, MaxPods, Status, Mode, Branch, Waiting, Version, Up        string
	Instance, Source, Prefixes                                       string
	Class, MaxPodsClass                                              paint.Class
}

// RowOf says a node in cells.
func RowOf(n introspect.NodeIPAM) Row {
	if n.Summary == nil {
		return Row{
			Type: unread, ENIs: unread, Used: unread, AssignedText: unread, CoolingText: unread, FreeText: unread, LimitText: unread,
			Warm: unread, MaxPods: unread, Mode: unread, Branch: unread, Waiting: unread, Version: unread, Up: unread,
			Instance: unread, Source: unread, Prefixes: unread,
			Status: fleet.Word(n), Class: paint.Bad,
		}
	}
	s := *n.Summary
	r := Row{
		Type: show.OrUnknown(s.InstanceType), Instance: show.OrUnknown(s.InstanceID), Version: show.OrUnknown(s.Version),
		Warm: store.WarmTargets(s), Waiting: show.Int(s.WaitingADDs), Source: n.Source, Branch: store.Branches(s.Trunk), Up: show.Unknown,
	}
	if n.SampledAt != nil {
		r.Up = show.Since(s.StartedAt, *n.SampledAt)
	}
	r.sum(s.Cards)
	r.MaxPods, r.MaxPodsClass = maxPods(s.MaxPods)
	r.Status, r.Class = status(n)
	return r
}

func (r *Row) sum(cards []introspect.CardSummary) {
	enis, eniLimit, prefixes := 0, 0, 0
	limitKnown, eniLimitKnown := len(cards) > 0, len(cards) > 0
	var modes []string
	for _, c := range cards {
		r.Assigned += c.Assigned
		r.Cooling += c.Cooling
		r.Free += c.Free
		enis += c.ENIs
		prefixes += c.Prefixes
		if c.AddressLimit == nil {
			limitKnown = false
		} else {
			r.Limit += *c.AddressLimit
		}
		if c.ENILimit == nil {
			eniLimitKnown = false
		} else {
			eniLimit += *c.ENILimit
		}
		if len(modes) == 0 || modes[len(modes)-1] != c.Mode {
			modes = append(modes, c.Mode)
		}
	}
	r.LimitText, r.Used = show.Unknown, show.Count(r.Assigned)
	if limitKnown {
		r.LimitText = show.Count(r.Limit)
		r.Used += "/" + r.LimitText
	} else {
		r.Limit = 0
	}
	r.ENIs = strconv.Itoa(enis)
	if eniLimitKnown {
		r.ENIs += "/" + strconv.Itoa(eniLimit)
	}
	r.AssignedText, r.CoolingText, r.FreeText = show.Count(r.Assigned), show.Count(r.Cooling), show.Count(r.Free)
	r.Prefixes = strconv.Itoa(prefixes)
	r.Mode = show.OrUnknown(strings.Join(modes, "+"))
}

func maxPods(m *introspect.MaxPods) (string, paint.Class) {
	if m == nil || m.Value == nil {
		return show.Unknown, paint.Plain
	}
	switch m.Verdict {
	case introspect.MaxPodsOver:
		return fmt.Sprintf("%d over", *m.Value), paint.Warn
	case "":
		return strconv.Itoa(*m.Value), paint.Plain
	}
	return fmt.Sprintf("%d %s", *m.Value, m.Verdict), paint.Plain
}

// status is the STATUS cell: the worst that is wrong, or ok with what the original
// does not tell.
func status(n introspect.NodeIPAM) (string, paint.Class) {
	word := fleet.Word(n)
	if word == "ok" {
		if n.Source == introspect.SourceV1 {
			return "ok (original)", paint.OK
		}
		return word, paint.OK
	}
	ps := fleet.Problems(n)
	if len(ps) > 0 && ps[0].Severity == introspect.SeverityError {
		return word, paint.Bad
	}
	return word, paint.Warn
}

// When tells the time of a problem: how long ago, since, or still. It is empty when
// it is not known.
func When(p introspect.Problem, now time.Time) string {
	before, age, after := "", show.Unknown, ""
	switch {
	case p.At != nil:
		age, after = show.Since(p.At, now), " ago"
	case p.Since != nil:
		before, age = "for ", show.Since(p.Since, now)
	case p.Until != nil:
		age, after = show.Until(p.Until, now), " more"
	}
	if age == show.Unknown {
		return ""
	}
	return before + age + after
}
