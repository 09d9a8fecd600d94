package terminal

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Screen is the text that a terminal shows, without colours. It implements the sequences that
// programs write to an xterm-256color.
type Screen struct {
	width, height int
	lines         [][]rune
	x, y          int
	top, bottom   int  // scrolling region
	last          rune // for REP
	open          bool // within a synchronized update
	frames        int  // synchronized updates that have ended
	parser        *ansi.Parser
	reply         func(string) // sends the terminal's answers
}

// NewScreen returns an empty screen; reply receives its answers to the program's queries.
func NewScreen(width, height int, reply func(string)) *Screen {
	s := &Screen{width: width, height: height, bottom: height - 1, reply: reply, parser: ansi.NewParser()}
	s.lines = s.blank()
	s.parser.SetHandler(ansi.Handler{Print: s.print, Execute: s.control, HandleCsi: s.csi, HandleEsc: s.esc, HandleOsc: s.osc})
	return s
}

// Write draws b. It never fails.
func (s *Screen) Write(b []byte) (int, error) {
	for _, c := range b {
		s.parser.Advance(c)
	}
	return len(b), nil
}

// Height is the number of lines.
func (s *Screen) Height() int { return s.height }

// String returns the text without empty lines.
func (s *Screen) String() string {
	var b strings.Builder
	for y := range s.height {
		if l := s.Line(y); l != "" {
			b.WriteString(l + "\n")
		}
	}
	return b.String()
}

// resize changes the size, to at least one cell. Text out of bounds is lost.
func (s *Screen) resize(width, height int) {
	before := s.lines
	s.width, s.height = max(width, 1), max(height, 1)
	s.lines = s.blank()
	for y := range min(len(before), s.height) {
		copy(s.lines[y], before[y])
	}
	s.top, s.bottom = 0, s.height-1
	s.x, s.y = min(s.x, s.width-1), min(s.y, s.height-1)
}

func (s *Screen) blank() [][]rune {
	out := make([][]rune, s.height)
	for i := range out {
		out[i] = s.empty()
	}
	return out
}

func (s *Screen) empty() []rune {
	line := make([]rune, s.width)
	fill(line)
	return line
}

func fill(cells []rune) {
	for i := range cells {
		cells[i] = ' '
	}
}

// Line returns a line's text, "" if there is no such line; a negative y counts from the end.
func (s *Screen) Line(y int) string {
	if y < 0 {
		y += s.height
	}
	if y < 0 || y >= s.height {
		return ""
	}
	return strings.TrimRight(string(s.lines[y]), " ")
}

func (s *Screen) print(r rune) {
	if ansi.StringWidth(string(r)) == 0 {
		return
	}
	if s.x >= s.width { // the last column is full: wrap
		s.x = 0
		s.down()
	}
	s.lines[s.y][s.x] = r
	s.x++
	s.last = r
}

func (s *Screen) control(b byte) {
	switch b {
	case '\r':
		s.x = 0
	case '\n':
		s.down()
	case '\b':
		s.x = max(min(s.x, s.width-1)-1, 0)
	case '\t':
		s.x = min((s.x/8+1)*8, s.width-1)
	}
}

func (s *Screen) down() {
	if s.y == s.bottom {
		s.scroll(s.top, 1)
		return
	}
	s.y = min(s.y+1, s.height-1)
}

// scroll moves the lines from a line to the end of the region up by n, or down if n < 0.
func (s *Screen) scroll(from, n int) {
	region := s.lines[from : s.bottom+1]
	for range min(max(n, -n), len(region)) {
		if n > 0 {
			copy(region, region[1:])
			region[len(region)-1] = s.empty()
		} else {
			copy(region[1:], region)
			region[0] = s.empty()
		}
	}
}

func (s *Screen) esc(cmd ansi.Cmd) {
	switch cmd.Final() {
	case 'M':
		if s.y == s.top {
			s.scroll(s.top, -1)
		} else {
			s.y = max(s.y-1, 0)
		}
	case 'D':
		s.down()
	case 'E':
		s.x = 0
		s.down()
	}
}

func (s *Screen) csi(cmd ansi.Cmd, p ansi.Params) {
	arg := func(i, def int) int {
		v, _, ok := p.Param(i, def)
		if !ok || v == 0 && def > 0 {
			return def
		}
		return v
	}
	switch {
	case cmd.Prefix() == '?' && cmd.Intermediate() == '$' && cmd.Final() == 'p':
		s.mode(arg(0, 0))
		return
	case cmd.Prefix() == '?' && (cmd.Final() == 'h' || cmd.Final() == 'l'):
		s.set(arg(0, 0), cmd.Final() == 'h')
		return
	case cmd.Prefix() != 0 || cmd.Intermediate() != 0:
		return
	}
	s.edit(cmd.Final(), arg)
	s.move(cmd.Final(), arg)
}

// mode answers whether the terminal has a mode, as current terminals do: it has synchronized
// updates, currently off.
func (s *Screen) mode(mode int) {
	if mode == synchronized {
		s.reply("\x1b[?2026;2$y")
	}
}

const (
	synchronized = 2026
	alternate    = 1049
)

func (s *Screen) set(mode int, on bool) {
	switch mode {
	case synchronized:
		s.open = on
		if !on {
			s.frames++
		}
	case alternate:
		s.lines = s.blank()
	}
}

func (s *Screen) osc(cmd int, data []byte) {
	if cmd == 11 && strings.HasSuffix(string(data), "?") {
		s.reply("\x1b]11;rgb:1d1d/1f1f/2121\x1b\\")
	}
}

// move handles the sequences that move the cursor.
func (s *Screen) move(final byte, arg func(int, int) int) {
	n := arg(0, 1)
	switch final {
	case 'A':
		s.y -= n
	case 'B':
		s.y += n
	case 'C':
		s.x += n
	case 'D':
		s.x = min(s.x, s.width-1) - n
	case 'G', '`':
		s.x = n - 1
	case 'd':
		s.y = n - 1
	case 'H', 'f':
		s.y, s.x = n-1, arg(1, 1)-1
	case 'I':
		s.x = (s.x/8 + n) * 8
	case 'Z':
		s.x = ((s.x+7)/8 - n) * 8
	case 'r':
		s.top, s.bottom = min(n, s.height)-1, min(arg(1, s.height), s.height)-1
		if s.top >= s.bottom {
			s.top, s.bottom = 0, s.height-1
		}
		s.x, s.y = 0, 0
	default:
		return
	}
	s.x, s.y = min(max(s.x, 0), s.width-1), min(max(s.y, 0), s.height-1)
}

// edit handles the sequences that change cells.
func (s *Screen) edit(final byte, arg func(int, int) int) {
	n := arg(0, 1)
	at := min(s.x, s.width-1)
	line := s.lines[s.y]
	rest := line[at:]
	switch final {
	case 'J':
		s.erase(arg(0, 0), at)
	case 'K':
		switch arg(0, 0) {
		case 0:
			fill(rest)
		case 1:
			fill(line[:at+1])
		case 2:
			fill(line)
		}
	case 'X':
		fill(rest[:min(n, len(rest))])
	case '@':
		n = min(n, len(rest))
		copy(rest[n:], rest)
		fill(rest[:n])
	case 'P':
		n = min(n, len(rest))
		copy(rest, rest[n:])
		fill(rest[len(rest)-n:])
	case 'b':
		for range min(n, s.width*s.height) {
			s.print(s.last)
		}
	case 'L', 'M':
		if s.y >= s.top && s.y <= s.bottom {
			if final == 'L' {
				n = -n
			}
			s.scroll(s.y, n)
		}
	case 'S':
		s.scroll(s.top, n)
	case 'T':
		s.scroll(s.top, -n)
	}
}

func (s *Screen) erase(what, at int) {
	from, to := 0, s.height
	switch what {
	case 0:
		fill(s.lines[s.y][at:])
		from = s.y + 1
	case 1:
		fill(s.lines[s.y][:at+1])
		to = s.y
	}
	for _, l := range s.lines[from:to] {
		fill(l)
	}
}
