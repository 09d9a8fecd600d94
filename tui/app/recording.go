package app

import (
	"math"
	"slices"
	"strconv"
	"time"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/draw"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
)

// playback is the position that a recording is seeking to. One seek runs at a time; keys
// pressed meanwhile move its target.
type playback struct {
	to      time.Time
	seeking bool
}

// speeds are the playback speeds that the keys step through.
var speeds = []float64{0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 1000}

// sought reports that a seek to a time has ended.
type sought struct{ at time.Time }

func (m *Model) recording() (watch.Recording, bool) {
	r, ok := m.o.Source.(watch.Recording)
	return r, ok
}

// onPlayback handles the keys that only a recording has.
func (m *Model) onPlayback(action string) tea.Cmd {
	r, ok := m.recording()
	if !ok {
		return m.say(draw.Faint, "only a recording can be rewound: cnictl replay FILE")
	}
	switch action {
	case keymap.MinuteBack:
		return m.seekBy(r, -time.Minute)
	case keymap.MinuteAhead:
		return m.seekBy(r, time.Minute)
	case keymap.TenBack:
		return m.seekBy(r, -10*time.Minute)
	case keymap.TenAhead:
		return m.seekBy(r, 10*time.Minute)
	case keymap.PlaySlower:
		at, _ := slices.BinarySearch(speeds, r.Rate())
		r.Speed(speeds[max(at-1, 0)])
	case keymap.PlayFaster:
		at, found := slices.BinarySearch(speeds, r.Rate())
		if found {
			at++
		}
		r.Speed(speeds[min(at, len(speeds)-1)])
	}
	return m.say(draw.Info, "speed "+m.speed(r))
}

func (m *Model) seekBy(r watch.Recording, by time.Duration) tea.Cmd {
	from, end := r.Range()
	at := r.Now()
	if m.playback.seeking {
		at = m.playback.to
	}
	to := at.Add(by)
	if to.Before(from) {
		to = from
	}
	if to.After(end) {
		to = end
	}
	m.playback.to = to
	if m.playback.seeking {
		return nil
	}
	return m.seek(r)
}

func (m *Model) seek(r watch.Recording) tea.Cmd {
	m.playback.seeking = true
	to := m.playback.to
	return func() tea.Msg {
		r.Seek(to)
		return sought{to}
	}
}

// sought shows the fleet at the new position, even while the recording is paused.
func (m *Model) sought(s sought) tea.Cmd {
	m.playback.seeking = false
	if r, ok := m.recording(); ok && !m.playback.to.Equal(s.at) {
		return m.seek(r)
	}
	m.view, m.src.stats = m.o.Source.View(), m.o.Source.Stats()
	return m.page().Update(m.context(), pages.Changed{})
}

func (m *Model) speed(r watch.Recording) string {
	return m.style().Pick("×", "x") + strconv.FormatFloat(r.Rate(), 'g', 4, 64)
}

// Cells of the time line.
var (
	timePlayed  = draw.Cell{Glyph: "█", ASCII: "#", Role: draw.BarUsed}
	timeAhead   = draw.CellOf(draw.BarRoom)
	errorPlayed = draw.Cell{Glyph: "▓", ASCII: "+", Role: draw.Bad}
	errorAhead  = draw.Cell{Glyph: "░", ASCII: "=", Role: draw.Bad}
	timeMark    = draw.Cell{Glyph: "◆", ASCII: "*", Role: draw.Accent}
)

// timeline draws a recording up to a time and beyond, where nodes had errors, and its marks.
func timeline(r watch.Recording, at time.Time, width int) []draw.Cell {
	from, end := r.Range()
	track := r.Track()
	place := func(t time.Time) int {
		if !end.After(from) {
			return width
		}
		return int(math.Round(t.Sub(from).Seconds() / end.Sub(from).Seconds() * float64(width)))
	}
	cells := make([]draw.Cell, width)
	played := place(at)
	for x := range cells {
		n := len(track.Errors)
		failed := n > 0 && slices.Contains(track.Errors[x*n/width:max((x+1)*n/width, x*n/width+1)], true)
		switch {
		case failed && x < played:
			cells[x] = errorPlayed
		case failed:
			cells[x] = errorAhead
		case x < played:
			cells[x] = timePlayed
		default:
			cells[x] = timeAhead
		}
	}
	for _, mark := range track.Marks {
		if x := place(mark); x >= 0 && x <= width && width > 0 {
			cells[min(x, width-1)] = timeMark
		}
	}
	return cells
}

// playbackLine shows the position in the recording and the keys that move it.
func (m *Model) playbackLine(s draw.Style, r watch.Recording) string {
	from, end := r.Range()
	at := r.Now()
	if m.playback.seeking {
		at = m.playback.to
	}
	role, sign, says := draw.Good, s.Pick("▶", ">"), m.speed(r)
	switch {
	case m.playback.seeking:
		role, sign, says = draw.Info, s.Pick("▶", ">"), "seeking"
	case m.paused:
		role, sign, says = draw.Warn, s.Pick("■", "="), "paused"
	case !at.Before(end):
		role, sign, says = draw.Warn, s.Pick("■", "="), "at the end"
	}
	l := draw.NewLine(s, m.width).Gap(1).Add(role, sign).Gap(1)
	format, cells := "15:04:05Z", 10 // as --at accepts it
	if m.width >= 100 {
		format, cells = time.RFC3339, min(m.width/4, 60)
	}
	l.Add(draw.Title, at.UTC().Format(format)).Gap(1)
	l.Drawn(draw.Strip(s, timeline(r, at, cells)), cells).Gap(1)
	l.Add(draw.Text, human.Age(at.Sub(from))+" of "+human.Age(end.Sub(from))).Gap(2).Add(role, says).Gap(2)
	for _, h := range [][3]string{
		{keymap.MinuteBack, keymap.MinuteAhead, "1 min"}, {keymap.TenBack, keymap.TenAhead, "10 min"},
		{keymap.PlaySlower, keymap.PlayFaster, "speed"},
	} {
		keys := m.key1(h[0]) + " " + m.key1(h[1])
		if l.Room() > draw.Width(keys)+len(h[2])+2 {
			l.Add(draw.Key, keys).Gap(1).Add(draw.KeyHelp, h[2]).Gap(2)
		}
	}
	return l.String()
}
