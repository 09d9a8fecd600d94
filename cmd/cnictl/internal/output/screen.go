package output

import (
	"fmt"
	"strings"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/paint"
)

// Screen draws frames over one another, without the alternate screen: earlier output stays in
// the scroll-back, and the last frame stays at the end.
type Screen struct {
	f             *cli.Factory
	lines         int
	width, height int
}

// NewScreen draws on standard output.
func NewScreen(f *cli.Factory) *Screen { return &Screen{f: f} }

// Draw draws a frame.
func (s *Screen) Draw(lines []string) error {
	var b strings.Builder
	b.WriteString("\x1b[?2026h") // as one update, if the terminal supports it
	width, height := s.f.Streams.Size()
	switch {
	case s.lines > 0 && (width != s.width || height != s.height):
		b.WriteString("\x1b[H\x1b[2J") // the terminal rewrapped the lines: start over
	case s.lines > 0:
		fmt.Fprintf(&b, "\x1b[%dA\r", s.lines)
	}
	for _, l := range clean(s.f, lines) {
		b.WriteString(l)
		b.WriteString("\x1b[K\n")
	}
	b.WriteString("\x1b[J\x1b[?2026l")
	s.lines, s.width, s.height = len(lines), width, height
	return write(s.f, []byte(b.String()))
}

// Redraw draws the rows over the previous ones, as many as fit. Without a terminal, and in
// forms other than tables, it calls Follow.
func (l *List[T]) Redraw(f *cli.Factory, s *Screen, rows []T) error {
	if !f.Streams.OutTTY || Structured(f) || f.Globals.Output == CSV {
		return l.Follow(f, rows)
	}
	lines := l.table(l.Choose(rows)).Lines(l.options(f))
	if _, height := f.Streams.Size(); height > 2 && len(lines) > height-1 {
		more := fmt.Sprintf("… %d more: --filter, --sort-by", len(lines)-(height-2))
		lines = append(lines[:height-2:height-2], f.Palette().Paint(paint.Dim, more))
	}
	return s.Draw(lines)
}
