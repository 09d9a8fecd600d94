package cli

import (
	"io"
	"strconv"
	"strings"
)

// Streams are where a command reads and writes.
type Streams struct {
	In             io.Reader
	Out, Err       io.Writer
	OutTTY, ErrTTY bool
	// Interactive means that standard input and output are a terminal that can move its
	// cursor, so that screens can be shown.
	Interactive bool
	// Size returns the terminal's size; 0×0 if there is none.
	Size func() (width, height int)
	// Resized fires when the terminal's size changes; nil if that cannot be known.
	Resized <-chan struct{}
}

// ForceTTY applies CNICTL_FORCE_TTY=WIDTH[xHEIGHT]: standard output then counts as a terminal
// of that size. It is for tests.
func (s *Streams) ForceTTY(value string) error {
	if value == "" {
		return nil
	}
	w, h, _ := strings.Cut(value, "x")
	width, err := strconv.Atoi(w)
	height := 24
	if err == nil && h != "" {
		height, err = strconv.Atoi(h)
	}
	if err != nil || width < 1 || height < 1 {
		return Usage("CNICTL_FORCE_TTY=%s: must be a width, or a width and height such as 80x24", value)
	}
	s.OutTTY = true
	s.Size = func() (int, int) { return width, height }
	return nil
}

// Width returns the terminal's width, 0 if output does not go to a terminal.
func (s *Streams) Width() int {
	if !s.OutTTY {
		return 0
	}
	width, _ := s.Size()
	return width
}
