package draw

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// TestClip: Clip keeps as much of a text as fits, in complete characters.
func TestThousandsOfCells(t *testing.T) {
	t.Parallel()
	for cell, want := range map[string]string{
		"1742/2492": "1,742/2,492", "12/1048576": "12/1,048,576", "999": "999", "1000": "1,000", "-": "-", "1742/-": "1742/-", "0012": "0012",
		"12/~2^48": "12/~2^48", "1234ms": "1234ms", "/1234": "/1234", "": "",
	} {
		if got := Counts(cell); got != want {
			t.Errorf("%q: %q, want %q", cell, got, want)
		}
	}
}

func TestClip(t *testing.T) {
	t.Parallel()
	s := Style{Theme: PlainTheme()}
	texts := []string{
		"", "plain", "naïve", "日本語のノード", "👍🏽👍🏽👍🏽", "e\u0301e\u0301e\u0301", "🇩🇪🇫🇷", "☁️☁️☁️", strings.Repeat("ab日", 200), "\xff\xfe日",
	}
	for _, text := range texts {
		for width := range 40 {
			got := s.Clip(text, width)
			switch {
			case Width(got) > width:
				t.Errorf("%q in %d cells is %q, %d cells wide", text, width, got, Width(got))
			case Width(text) <= width && got != text:
				t.Errorf("%q fits %d cells and is %q", text, width, got)
			case utf8.ValidString(text) && !utf8.ValidString(got):
				t.Errorf("%q in %d cells is cut within a character: %q", text, width, got)
			case width > 2 && Width(text) > width && Width(got) < width-4:
				t.Errorf("%q in %d cells has only %q", text, width, got)
			}
			if head := Head(text, width); !strings.HasPrefix(text, head) || Width(head) > width {
				t.Errorf("the head of %q for %d cells is %q", text, width, head)
			}
		}
	}
}

func BenchmarkClip(b *testing.B) {
	s := Style{Theme: PlainTheme()}
	text := strings.Repeat("日本語 node ", 100)
	b.ReportAllocs()
	for b.Loop() {
		s.Clip(text, 80)
	}
}

// TestClock: a time of day means today. Anything older than a day shows its date, as wide.
func TestClock(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 18, 0, 0, 0, time.UTC)
	for ago, want := range map[time.Duration]string{
		0: "18:00:00", 23 * time.Hour: "19:00:00", 25 * time.Hour: "Nov 21  ", 20 * 24 * time.Hour: "Nov  2  ", -time.Minute: "18:01:00",
	} {
		if got := Clock(now.Add(-ago), now); got != want {
			t.Errorf("%s ago: %q, want %q", ago, got, want)
		}
	}
	if got := Clock(time.Time{}, now); got != "--:--:--" {
		t.Errorf("no time: %q", got)
	}
}

func TestThousands(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1234: "-1,234"} {
		if got := Thousands(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
