package show

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

func TestClip(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in    string
		width int
		want  string
	}{
		{"ip-10-0-3-17", 12, "ip-10-0-3-17"}, {"ip-10-0-3-17", 11, "ip-10-0-3-…"}, {"ab", 1, "…"}, {"ab", 0, ""}, {"ab", -1, ""}, {"", 0, ""},
		{"東京都", 6, "東京都"}, {"東京都", 5, "東京…"}, {"東京都", 4, "東…"}, {"東京都", 1, "…"},
		{"Zu\u0308rich", 6, "Zu\u0308rich"}, {"Zu\u0308rich", 3, "Zu\u0308…"},
		{"a\x1b[2Jb", 20, `a\x1b[2Jb`}, {"a\x1b[2Jb", 4, `a\x…`},
	} {
		if got := Clip(c.in, c.width); got != c.want {
			t.Errorf("Clip(%q, %d) = %q, want %q", c.in, c.width, got, c.want)
		}
	}
	if Width("東京a") != 5 || Width("\n") != 2 {
		t.Errorf("%d %d", Width("東京a"), Width("\n"))
	}
}

// hold checks Clip's guarantees for a text.
func hold(t *testing.T, s string, width int) {
	t.Helper()
	got := Clip(s, width)
	if ansi.StringWidth(got) > max(0, width) || Width(s) <= width && got != alone(s) {
		t.Fatalf("Clip(%q, %d) = %q", s, width, got)
	}
	if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !strconv.IsPrint(r) }) {
		t.Fatalf("Clip(%q, %d) = %q is not safe", s, width, got)
	}
}

func TestClip_Property(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	letters := []rune("ab-1 東京é\u0308\u0301\x1b[\n\u202e\u200b😀👩\u200d\ufe0f▁█…\u00ad\ufffd\U000e0041한")
	for range 5_000 {
		n := random.IntN(12)
		text := make([]rune, n)
		for i := range text {
			text[i] = letters[random.IntN(len(letters))]
		}
		hold(t, string(text), random.IntN(20)-1)
	}
}

func FuzzClip(f *testing.F) {
	for _, s := range []string{"a", "東京都", "e\u0301\u0301", "\x1b]0;x\x07", "\u202e", "\xff", "👩\u200d👩\u200d👦", "🇩🇪🇩"} {
		f.Add(s, 5)
	}
	f.Fuzz(func(t *testing.T, s string, width int) { hold(t, s, max(-1, width%300)) })
}

func TestSpark(t *testing.T) {
	t.Parallel()
	values := []float64{0, 0.12, 0.25, 0.5, 0.99, 1, math.NaN(), -1, 2, math.Inf(1)}
	if got := Spark(values, len(values)+1, 1, false); got != " ▁▂▂▄██ ▁██" {
		t.Errorf("%q", got)
	}
	if got := Spark(values, len(values)-1, 1, true); got != "..=%% _%%" {
		t.Errorf("%q", got)
	}
	if Spark(nil, 0, 1, false) != "" || Spark(values, -1, 1, false) != "" {
		t.Error("nothing is something")
	}
}

func TestRate(t *testing.T) {
	t.Parallel()
	for in, want := range map[float64]string{0: "0", 0.04: "0.0", 0.44: "0.4", 9.94: "9.9", 9.96: "10", 1234: "1234", math.Inf(1): "-"} {
		if got := Rate(in); got != want {
			t.Errorf("%g: %s, want %s", in, got, want)
		}
	}
}

func BenchmarkClip(b *testing.B) {
	for name, s := range map[string]string{"ascii": "ip-10-0-3-17", "wide": "東京都-ip-10"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = Clip(s, 10)
				_ = Width(s)
			}
		})
	}
}
