package components

import (
	"strings"
	"testing"

	"cnictl/tui/draw"
)

// TestLogView_StaysAtTheLine: a reader who scrolled back stays at the line while others come and go
// before it.
func TestLogView_StaysAtTheLine(t *testing.T) {
	t.Parallel()
	lines := func(values ...int) (out []LogLine) {
		for _, v := range values {
			out = append(out, LogLine{Value: v})
		}
		return out
	}
	var v LogView
	v.Set(lines(1, 2, 3, 4, 5))
	if at, _ := v.Line(); at.Value != 5 || !v.Following() {
		t.Fatalf("follows at %v", at.Value)
	}
	v.move(2)
	for _, x := range []struct {
		now  []int
		want any
	}{{[]int{0, 1, 2, 3, 4, 5, 6}, 3}, {[]int{3, 4, 5, 6}, 3}, {[]int{5, 6}, 5}, {nil, nil}} {
		v.Set(lines(x.now...))
		if at, _ := v.Line(); at.Value != x.want {
			t.Errorf("of %v: at %v, want %v", x.now, at.Value, x.want)
		}
	}
}

// TestLogView_Wraps: a long line breaks at blanks and continues behind the times. No text is lost.
func TestLogView_Wraps(t *testing.T) {
	t.Parallel()
	var v LogView
	v.Wrap = true
	v.Set([]LogLine{{Parts: []draw.Span{draw.T(draw.Faint, "14:02:08 "), draw.T(draw.Bad, "error "), draw.T(draw.Text, "attach ENI eni-0123456789abcdef0: RequestLimitExceeded")}}})
	for width, want := range map[int][]string{
		80: {"14:02:08 error attach ENI eni-0123456789abcdef0: RequestLimitExceeded"},
		40: {"14:02:08 error attach ENI", "         eni-0123456789abcdef0:", "         RequestLimitExceeded"},
		// No room for the indent: words are split where necessary.
		16: {"14:02:08 error", "attach ENI", "eni-0123456789ab", "cdef0:", "RequestLimitExce", "eded"},
	} {
		lines := v.Lines(draw.Style{Theme: draw.PlainTheme()}, width, 8)
		for i, l := range lines {
			lines[i] = strings.TrimRight(l, " ")
		}
		if got := strings.TrimRight(strings.Join(lines, "\n"), "\n"); got != strings.Join(want, "\n") {
			t.Errorf("at %d:\n%s\nwant\n%s", width, got, strings.Join(want, "\n"))
		}
	}
}
