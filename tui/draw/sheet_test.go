package draw

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestSheet: every line has the requested width, and no word is lost.
func TestSheet(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	words := []string{"a", "pool", "eni-0a1b2c3d4e5f60718", "世界", "…", "é", "warm-ip-target"}
	for range 2000 {
		width := r.IntN(70)
		s := NewSheet(Style{Theme: PlainTheme(), ASCII: r.IntN(4) == 0}, width)
		var spans []Span
		var letters int
		for range r.IntN(12) {
			w := words[r.IntN(len(words))]
			spans = append(spans, T(Text, strings.Repeat(" ", r.IntN(3))+w))
			letters += len(strings.ReplaceAll(w, " ", ""))
		}
		switch r.IntN(3) {
		case 0:
			s.Add(spans...)
		case 1:
			s.Field("label", spans...)
		default:
			s.Item(T(Warn, "W"), spans...)
		}
		got := 0
		for _, l := range s.Lines() {
			if w := Width(l); w != width {
				t.Fatalf("a line of width %d is %d wide: %q", width, w, l)
			}
			got += len(strings.ReplaceAll(l, " ", ""))
		}
		if width > 20 && !s.style.ASCII && got < letters {
			t.Fatalf("%d bytes of %d are there at %d: %q of %q", got, letters, width, s.Lines(), spans)
		}
	}
}
