package node

import (
	"strconv"

	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
	"cnictl/tui/show"
)

// pool writes what the warm pool holds, needs and does. It leaves out the first placed
// sections, which are shown elsewhere.
func (m *Model) pool(c pages.Context, n *store.Node, sheet *draw.Sheet, height, placed int) {
	if n == nil || n.Summary == nil {
		if n != nil && unreadable(n) {
			sheet.Add(draw.T(draw.Faint, "Not read."))
		} else if n != nil && n.Error != nil {
			sheet.Add(draw.T(draw.Bad, "Not read: "+pages.Reason(*n.Error)))
		} else {
			sheet.Add(draw.T(draw.Faint, pages.Missing(c, &m.docs, 0, n, "The pool")))
		}
		m.kubernetes(sheet, n)
		return
	}
	if n.State != document.StateLive {
		known := "Last known values."
		if word, _ := pages.StateOf(n, c.Now); !unreadable(n) {
			known = "Last known values: " + word
		}
		sheet.Add(draw.T(draw.Stale, known))
	}
	numbers(c.Style(), sheet, n)
	problems(sheet, n)
	small := height < 9 // then the history comes last
	if !small {
		chart(c.Style(), sheet, n, c.Now, height)
	}
	m.plan(c, sheet, n)
	clocks(sheet, n, c.Now)
	m.decisions(c, sheet, n)
	for _, write := range sections()[placed:] {
		write(sheet, n, c.Now)
	}
	if small {
		chart(c.Style(), sheet, n, c.Now, 24)
	}
	if n.Source == document.SourceV1 {
		sheet.Head("NOT REPORTED", "")
		sheet.Add(draw.T(draw.Faint, "The upstream daemon reports ENIs, addresses and two warm targets only: no plan, back-offs, decisions, EC2 calls, errors or branch ENIs."))
	}
}

// numbers writes the pool of each card as a gauge with its figures.
func numbers(s draw.Style, sheet *draw.Sheet, n *store.Node) {
	for _, card := range n.Summary.Cards {
		p := poolOf(card)
		capacity, byMaxPods := fleet.Capacity(n.NodeIPAM, card)
		whole, most, why := p.Held, show.Int(capacity), ""
		if capacity != nil {
			whole = max(whole, *capacity)
		}
		if byMaxPods {
			why = " max-pods"
		}
		label := "pool"
		if len(n.Summary.Cards) > 1 {
			label = "card " + strconv.Itoa(card.Card)
		}
		figures := [...]string{
			show.Count(p.Assigned) + " used", show.Int(card.Cooling) + " cooling", show.Count(p.Free) + " free",
			show.Count(p.Held) + " held of " + most,
		}
		const least = 5 // cells of the gauge
		taken := len(label) + 2 + 3*(len(figures)-1)
		for _, text := range figures {
			taken += len(text)
		}
		if taken+len(why)+least <= sheet.Width() {
			figures[3] += why
			taken += len(why)
		}
		width := min(max(sheet.Width()-taken, least), 40)
		if s.Linear {
			width = 0
		}
		l := draw.NewLine(s, sheet.Width()).Add(draw.Faint, label).Gap(1)
		l.Drawn(draw.Pool{Assigned: p.Assigned, Cooling: p.Cooling, Free: p.Free, Limit: whole, Alarms: true}.Gauge(s, width), width).Gap(1)
		for i, text := range figures {
			r := draw.Text
			if i == 2 {
				r = freeRole(p)
			}
			if i > 0 {
				l.Add(draw.Faint, s.Pick(" · ", " - "))
			}
			l.Add(r, text)
		}
		sheet.Drawn(l.String())
	}
	if len(n.Summary.Cards) == 0 {
		sheet.Add(draw.T(draw.Faint, "The daemon reports no network card."))
	}
}

func freeRole(p pool) draw.Role {
	if p.Held > 0 && p.Free == 0 {
		return draw.Bad
	}
	return draw.Good
}
