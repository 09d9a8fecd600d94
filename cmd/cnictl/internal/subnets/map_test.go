package subnets

import (
	"testing"
	"time"

	"cnictl/daemon/fleet/document"
)

// TestFree: a sentence about an unknown number has no gap in place of the number.
func TestFree(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 14, 2, 11, 0, time.UTC)
	available, usable, asOf := 12, 251, now.Add(-90*time.Second)
	for want, item := range map[string]document.SubnetItem{
		"12 of 251, by EC2's count 90s ago": {Available: &available, Usable: &usable, AsOf: &asOf},
		"12 of 251":                         {Available: &available, Usable: &usable},
		"12":                                {Available: &available},
		"unknown: no daemon that answered reports EC2's count (upstream does not)": {Usable: &usable},
	} {
		if got := free(document.SubnetMap{SubnetItem: item}, now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if known(nil) != "unknown" || known(&available) != "12" {
		t.Error(known(nil), known(&available))
	}
}

// TestSigns: unknown blocks do not look like free ones, and no sign is used twice.
func TestSigns(t *testing.T) {
	t.Parallel()
	if s := signOf("of a later release"); s.use != document.BlockUnknown {
		t.Errorf("%+v", s)
	}
	for held, want := range map[int]string{-1: "0", 1: "1", 10: "a", 15: "f", 16: "*", 99: "*"} {
		b := document.SubnetBlock{Use: document.BlockFragmented, Held: held}
		if got := signOf(b.Use).letterOf(b); got != want {
			t.Errorf("%d of 16: %s, want %s", held, got, want)
		}
	}
	seen := map[string]bool{}
	for _, s := range signs {
		if seen[s.letter] {
			t.Errorf("%s is there twice", s.letter)
		}
		seen[s.letter] = true
	}
}
