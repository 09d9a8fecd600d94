package overview

import (
	"cmp"
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
	barTight   = 5                // cells of the bar if only that makes all subnets fit one line
	moreWidth  = len(" +99 more") // of what counts the subnets that do not fit
)

// perLine returns how many subnets there are in a line: all of them, if they fit without their CIDRs.
func (p *Page) perLine(width int) int {
	room := width - len(p.title())
	if len(p.subnets)*p.tight() <= room {
		return max(len(p.subnets), 1)
	}
	return max(room/gaugeLeast, 1)
}

// tight returns the least width of a subnet's gauge that cuts nothing but the CIDR.
func (p *Page) tight() int {
	most := 0
	for _, u := range p.subnets {
		_, mark := alarm(draw.Style{}, u)
		most = max(most, draw.Width(zoneOf(u))+barTight+gaugeText(u, mark)+1)
	}
	return most
}

// gaugeText returns the width of what is written behind a bar, with blanks.
func gaugeText(u store.SubnetUse, mark string) int {
	return 1 + draw.Width(inventory.FullText(u)+mark) + 1 + draw.Width(draw.Thousands(*u.Available)+" free") + 2
}

// zoneOf names a subnet by its zone if that is known.
func zoneOf(u store.SubnetUse) string { return cmp.Or(u.Zone, u.ID) }

// alarm returns the colour of a subnet's bar, and the sign behind its percentage.
func alarm(s draw.Style, u store.SubnetUse) (bar draw.Role, mark string) {
	part, _ := inventory.FullShare(u)
	switch {
	case inventory.SubnetShort(u):
		return draw.BadRow, " !"
	case part >= 0.85:
		return draw.WarnRow, s.Pick(" ⚠", " W")
	}
	return draw.BarUsed, ""
}

func (p *Page) subnetLines(s draw.Style, width, height int) []string {
	if s.Linear {
		return p.subnetList(s, width)
	}
	var lines []string
	rest, title := p.subnets, p.title()
	few, after, _ := strings.Cut(title, ", ")
	each := p.perLine(width)
	free := width - len(title)
	if len(rest) > each*height {
		free -= moreWidth
	}
	room := min(free/each, gaugeMost)
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
		if y == height-1 && len(rest) > 0 {
			l.Gap(1).Add(draw.Faint, "+"+strconv.Itoa(len(rest))+" more")
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
		name := zoneOf(u)
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
	bar, mark := alarm(s, u)
	role := map[draw.Role]draw.Role{draw.BadRow: draw.Bad, draw.WarnRow: draw.Warn}[bar] // else Text
	cidr := " " + u.Range.String()
	cells := 12
	switch {
	case room < gaugeLeast:
		cells = barTight
	case room < gaugeLeast+10:
		cells = 8
	}
	label := room - gaugeText(u, mark) - cells
	name := s.Clip(zoneOf(u), max(label, 4))
	start := l.Room()
	l.Add(draw.Text, name)
	if draw.Width(name)+draw.Width(cidr) <= label {
		l.Add(draw.Faint, cidr)
	}
	l.Gap(1)
	l.Drawn(draw.Gauge(s, cells, 1, draw.Part{Value: part, Role: bar}), cells)
	l.Gap(1).Add(role, inventory.FullText(u)+mark).Gap(1).Add(draw.Faint, draw.Thousands(*u.Available)+" free")
	l.Gap(room - (start - l.Room()))
}
