package terminal

import (
	"strings"
	"testing"
)

func drawn(s *Screen, text string) string {
	_, _ = s.Write([]byte(text))
	var lines []string
	for y := range s.height {
		lines = append(lines, s.Line(y))
	}
	return strings.Join(lines, "|")
}

func TestScreen(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, want string }{
		"lines":               {"ab\r\ncd", "ab|cd||"},
		"colours are nothing": {"\x1b[1;38;5;4ma\x1b[mb", "ab|||"},
		"wide text wraps":     {"abcdefghij", "abcdefgh|ij||"},
		"runes":               {"▸é", "▸é|||"},
		"positions":           {"\x1b[2;3Hx\x1b[4dy\x1b[1Gz", "|  x||z  y"},
		"relative":            {"abc\x1b[2Dx\x1b[By\x1b[Az\x1b[Cw", "axcz w|  y||"},
		"backspace and tabs":  {"abc\b\bx\tz", "axc    z|||"},
		"erase":               {"abcdef\x1b[3G\x1b[2X\x1b[6G\x1b[K", "ab  e|||"},
		"insert and delete":   {"abcdef\x1b[2G\x1b[2@\x1b[5G\x1b[P", "a  bdef|||"},
		"repeat":              {"a\x1b[3b", "aaaa|||"},
		"insert line":         {"1\r\n2\r\n3\r\n4\x1b[2H\x1b[L", "1||2|3"},
		"delete line":         {"1\r\n2\r\n3\r\n4\x1b[2H\x1b[M", "1|3|4|"},
		"scroll a region":     {"1\r\n2\r\n3\r\n4\x1b[2;3r\x1b[3H\n\x1b[r", "1|3||4"},
		"reverse index":       {"1\r\n2\x1b[H\x1bM", "|1|2|"},
		"scroll":              {"1\r\n2\r\n3\r\n4\x1b[S", "2|3|4|"},
		"erase below":         {"1\r\n2\r\n3\x1b[2H\x1b[J", "1|||"},
		"erase all":           {"1\r\n2\x1b[2J", "|||"},
		"another screen":      {"1\x1b[?1049h\x1b[H2", "2|||"},
		"out of bounds":       {"\x1b[99;99Hx\x1b[99A\x1b[99Dy", "y|||       x"},
	} {
		if got := drawn(NewScreen(8, 4, nil), tt.text); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// A frame is complete when its synchronized update has ended.
func TestScreen_Frames(t *testing.T) {
	t.Parallel()
	var answers []string
	s := NewScreen(8, 4, func(a string) { answers = append(answers, a) })
	drawn(s, "\x1b[?2026$p\x1b[?2027$p\x1b]11;?\a\x1b[?2026hab")
	if !s.open || s.frames != 0 {
		t.Errorf("open %v, %d frames", s.open, s.frames)
	}
	drawn(s, "\x1b[?2026l")
	if s.open || s.frames != 1 {
		t.Errorf("open %v, %d frames", s.open, s.frames)
	}
	if got := strings.Join(answers, " "); got != "\x1b[?2026;2$y \x1b]11;rgb:1d1d/1f1f/2121\x1b\\" {
		t.Errorf("answers %q", got)
	}
}
