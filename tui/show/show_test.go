package show

import (
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestSafe(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"ip-10-0-3-17":  "ip-10-0-3-17",
		"Zürich 東京 ✓":   "Zürich 東京 ✓",
		"a\x1b[2Jb":     `a\x1b[2Jb`,
		"a\r\nb\tc":     `a\r\nb\tc`,
		"\u202egnp.exe": `\u202egnp.exe`,
		"a\u200bb":      `a\u200bb`,
		"a\u0085b":      `a\u0085b`,
		"\u2028":        `\u2028`,
		"bad\xff\xc3":   `bad\xff\xc3`,
		"\ufffd":        "\ufffd",
		"\x00":          `\x00`,
		`a\x1b`:         `a\x1b`,
	} {
		if got := Safe(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := Safe(strings.Repeat("é", 2000)); len(got) > maxLen+len("…") || !utf8.ValidString(got) {
		t.Errorf("%d bytes", len(got))
	}
}

func FuzzSafe(f *testing.F) {
	for _, s := range []string{"a", "\x1b]0;x\x07", "\u202e", "\xff", strings.Repeat("é", 600)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Safe(s)
		for _, r := range got {
			if !strconv.IsPrint(r) {
				t.Fatalf("%q gives %q with %U", s, got, r)
			}
		}
		if !utf8.ValidString(got) || Safe(got) != got && len(got) <= maxLen {
			t.Fatalf("%q gives %q", s, got)
		}
	})
}

func TestCount(t *testing.T) {
	t.Parallel()
	for in, want := range map[int]string{0: "0", 434: "434", 1<<30 - 1: "1073741823", 1 << 48: "~2^48", 1<<48 + 7: "~2^48"} {
		if got := Count(in); got != want {
			t.Errorf("%d: %s, want %s", in, got, want)
		}
	}
	if Int(nil) != "-" || OrUnknown("") != "-" || Since(nil, time.Time{}) != "-" {
		t.Error("unknown is not -")
	}
	now := time.Date(2026, 11, 21, 14, 2, 11, 0, time.UTC)
	for _, far := range []time.Time{{}, now.AddDate(-101, 0, 0), now.AddDate(101, 0, 0), time.Unix(1<<55, 0)} {
		if Since(&far, now) != "-" || Until(&far, now) != "-" {
			t.Errorf("%v: %s, %s", far, Since(&far, now), Until(&far, now))
		}
	}
	if old := now.AddDate(-50, 0, 0); Since(&old, now) != "18262d" || Until(&now, old) != "18262d" {
		t.Errorf("50 years: %s, %s", Since(&old, now), Until(&now, old))
	}
}
