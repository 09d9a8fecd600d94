package components

import (
	"slices"

	"cnictl/tui/draw"
	"cnictl/tui/keymap"
)

// LogLines is how many lines a LogView keeps.
const LogLines = 10_000

// LogLine is one line. Parts are drawn one after the other; all their text is safe.
type LogLine struct {
	Parts []draw.Span
	Value any // the object that the line shows, for the page
}

// LogView shows the last lines of a log and follows it while the cursor is at its end.
type LogView struct {
	Wrap    bool
	Dropped uint64 // lines that were dropped

	lines  []LogLine
	cursor int
	top    int
	page   int
	still  bool // the user has scrolled up: do not follow
}

// Append adds lines at the end.
func (v *LogView) Append(lines ...LogLine) {
	v.lines = append(v.lines, lines...)
	if over := len(v.lines) - LogLines; over > 0 {
		v.lines = append(v.lines[:0], v.lines[over:]...)
		v.Dropped += uint64(over)
		v.cursor, v.top = max(v.cursor-over, 0), max(v.top-over, 0)
	}
	if !v.still {
		v.cursor = max(len(v.lines)-1, 0)
	}
}

// Set replaces all lines. A user who has scrolled up stays at the same line if it is
// still there, else at the same position.
func (v *LogView) Set(lines []LogLine) {
	read, had := v.Line()
	at, above := v.cursor, v.cursor-v.top
	clear(v.lines)
	v.lines = v.lines[:0]
	v.Append(lines...)
	if !v.still {
		return
	}
	if had && read.Value != nil {
		if i := slices.IndexFunc(v.lines, func(l LogLine) bool { return l.Value == read.Value }); i >= 0 {
			at = i
		}
	}
	v.cursor = max(min(at, len(v.lines)-1), 0)
	v.top = max(v.cursor-above, 0)
}

// Len returns the number of lines.
func (v *LogView) Len() int { return len(v.lines) }

// Following reports whether new lines move the view.
func (v *LogView) Following() bool { return !v.still }

// Follow goes to the end and follows it, or stops following.
func (v *LogView) Follow(on bool) {
	v.still = !on
	if on {
		v.cursor = max(len(v.lines)-1, 0)
	}
}

// Line returns the line under the cursor.
func (v *LogView) Line() (LogLine, bool) {
	if v.cursor < len(v.lines) {
		return v.lines[v.cursor], true
	}
	return LogLine{}, false
}

// Window returns the first and the last line on the screen, counted from 1.
func (v *LogView) Window() (first, last int) {
	if len(v.lines) == 0 {
		return 0, 0
	}
	return v.top + 1, min(v.top+max(v.page, 1), len(v.lines))
}

// Do carries out cursor moves.
func (v *LogView) Do(action string) bool {
	switch action {
	case keymap.Up:
		v.move(v.cursor - 1)
	case keymap.Down:
		v.move(v.cursor + 1)
	case keymap.PageUp:
		v.move(v.cursor - v.page)
	case keymap.PageDown:
		v.move(v.cursor + v.page)
	case keymap.HalfUp:
		v.move(v.cursor - max(v.page/2, 1))
	case keymap.HalfDown:
		v.move(v.cursor + max(v.page/2, 1))
	case keymap.First:
		v.move(0)
	case keymap.Last:
		v.move(len(v.lines) - 1)
	default:
		return false
	}
	return true
}

// Click selects the line at a row of the view.
func (v *LogView) Click(y int) { v.move(v.top + y) }

// Wheel moves by rows.
func (v *LogView) Wheel(rows int) { v.move(v.cursor + rows) }

func (v *LogView) move(to int) {
	v.cursor = max(min(to, len(v.lines)-1), 0)
	v.still = v.cursor < len(v.lines)-1
}

// Lines draws the window that contains the cursor.
func (v *LogView) Lines(s draw.Style, width, height int) []string {
	if width <= 0 || height <= 0 {
		return nil
	}
	v.page = height
	if v.cursor < v.top {
		v.top = v.cursor
	}
	if v.Wrap || s.Linear {
		return v.wrapped(s, width, height)
	}
	v.top = max(min(max(v.top, v.cursor-height+1), len(v.lines)-height), 0)
	out := make([]string, 0, height)
	for i := v.top; i < len(v.lines) && len(out) < height; i++ {
		l := draw.NewLine(v.style(s, i), width)
		for _, p := range v.lines[i].Parts {
			l.Add(p.Role, p.Text)
		}
		out = append(out, l.String())
	}
	return draw.Exactly(out, width, height)
}

// style returns how a line is drawn: on a tint if the user has moved the cursor to it.
func (v *LogView) style(s draw.Style, i int) draw.Style {
	if i == v.cursor && v.still {
		return s.Selected()
	}
	return s
}

// wrapped draws from the cursor's line upwards until the height is full.
func (v *LogView) wrapped(s draw.Style, width, height int) []string {
	end := v.cursor
	if v.still {
		end = min(v.cursor+height/2, len(v.lines)-1)
	}
	var out []string
	for i := end; i >= 0 && len(out) < height; i-- {
		if i < len(v.lines) {
			out = append(v.fold(s, width, i), out...)
		}
		v.top = i
	}
	if over := len(out) - height; over > 0 {
		out = out[over:]
	}
	return draw.Exactly(out, width, height)
}

// wrapIndent is where a wrapped line continues: past the times, so that these show where
// the next line begins. wrapLeast is the least width left for text.
const (
	wrapIndent = 9
	wrapLeast  = 20
)

// fold breaks one line over several rows.
func (v *LogView) fold(s draw.Style, width, i int) []string {
	indent := max(min(wrapIndent, width-wrapLeast), 0)
	var out []string
	for _, l := range draw.Flow(draw.NewLine(v.style(s, i), width), indent, draw.Text, v.lines[i].Parts) {
		out = append(out, l.String())
	}
	return out
}
