package overview

import (
	"strconv"
	"strings"

	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/draw"
)

// short counts the subnets that are about to run out.
func short(all []store.SubnetUse) int {
	n := 0
	for _, u := range all {
		if inventory.SubnetShort(u) {
			n++
		}
	}
	return n
}

// title returns the text before the gauges.
func (p *Page) title() string {
	if n := short(p.subnets); n > 0 {
		return " Subnets, " + strconv.Itoa(n) + " short "
	}
	return " Subnets "
}

// gauges returns how many lines the subnets take: none on a low screen.
func (p *Page) gauges(width, height int) int {
	if len(p.subnets) == 0 || height < 12 {
		return 0
	}
	lines := 1
	if height >= 30 {
		lines = 2
	}
	each := p.perLine(width)
	return min(lines, (len(p.subnets)+each-1)/each)
}

const (
	gaugeLeast = 50 // cells of one subnet
	gaugeMost  = 64
)

func (p *Page) perLine(width int) int { return max((width-len(p.title()))/gaugeLeast, 1) }

func (p *Page) subnetLines(s draw.Style, width, height int) []string {
	if s.Linear {
		return p.subnetList(s, width)
	}
	var lines []string
	rest, title := p.subnets, p.title()
	few, after, _ := strings.Cut(title, ", ")
	each := p.perLine(width)
	room := min((width-len(title))/each, gaugeMost)
	for y := range height {
		l := draw.NewLine(s, width)
		if y == 0 {
			l.Add(draw.Title, few)
			if after != "" {
				l.Add(draw.Faint, ", ").Add(draw.Bad, after)
			}
		} else {
			l.Gap(len(title))
		}
		for range min(each, len(rest)) {
			gauge(l, s, rest[0], room)
			rest = rest[1:]
		}
		if y == height-1 && len(rest) > 0 && l.Room() > 8 {
			l.Add(draw.Faint, "+"+strconv.Itoa(len(rest))+" more")
		}
		lines = append(lines, l.String())
	}
	return lines
}

// subnetList writes each subnet on its own line.
func (p *Page) subnetList(s draw.Style, width int) []string {
	if len(p.subnets) == 0 {
		return nil
	}
	lines := []string{strings.TrimSpace(p.title()) + ":"}
	for _, u := range p.subnets {
		name := u.ID
		if u.Zone != "" {
			name = u.Zone
		}
		taken := inventory.FullText(u) + " taken, " + draw.Thousands(*u.Available) + " free"
		l := draw.NewLine(s, width).Add(draw.Text, name+" "+u.Range.String()+": "+taken)
		if inventory.SubnetShort(u) {
			l.Add(draw.Bad, ", short")
		}
		lines = append(lines, l.String())
	}
	return append(lines, "")
}

func gauge(l *draw.Line, s draw.Style, u store.SubnetUse, room int) {
	part, _ := inventory.FullShare(u)
	bar, role, mark := draw.BarUsed, draw.Text, ""
	switch {
	case inventory.SubnetShort(u):
		bar, role, mark = draw.BadRow, draw.Bad, " !"
	case part >= 0.85:
		bar, role, mark = draw.WarnRow, draw.Warn, s.Pick(" ⚠", " W")
	}
	name := u.ID
	if u.Zone != "" {
		name = u.Zone
	}
	percent := inventory.FullText(u)
	free := draw.Thousands(*u.Available) + " free"
	text := draw.Width(percent) + 2 + draw.Width(free) + draw.Width(mark) + 3
	cidr := " " + u.Range.String()
	cells := 12
	if room < gaugeLeast+10 {
		cells = 8
	}
	label := room - text - cells
	name = s.Clip(name, max(label, 4))
	start := l.Room()
	l.Add(draw.Text, name)
	if draw.Width(name)+draw.Width(cidr) <= label {
		l.Add(draw.Faint, cidr)
	}
	l.Gap(1)
	l.Drawn(draw.Gauge(s, cells, 1, draw.Part{Value: part, Role: bar}), cells)
	l.Gap(1).Add(role, percent+mark).Gap(1).Add(draw.Faint, free)
	l.Gap(room - (start - l.Room()))
}
