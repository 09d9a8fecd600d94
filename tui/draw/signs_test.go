package draw

import (
	"strings"
	"testing"

	"cnictl/tui/show"
)

// TestOneSignForAState: a state of addresses has the same sign everywhere.
func TestOneSignForAState(t *testing.T) {
	t.Parallel()
	states := map[Role]show.Sign{
		BarUsed: show.Used, BarCooling: show.Cooling, BarFree: show.Free, BarRoom: show.Room, BarOthers: show.Others,
	}
	for _, ascii := range []bool{false, true} {
		s := Style{Theme: PlainTheme(), ASCII: ascii}
		seen := map[string]bool{}
		for role, want := range states {
			sign := want.Pick(ascii)
			if seen[sign] {
				t.Errorf("%q means two things", sign)
			}
			seen[sign] = true
			if got := Strip(s, []Cell{CellOf(role)}); got != sign {
				t.Errorf("a strip has %q for %q", got, sign)
			}
			if got := Gauge(s, 4, 4, Part{Value: 4, Role: role}); got != strings.Repeat(sign, 4) {
				t.Errorf("a gauge has %q for %q", got, sign)
			}
			chart := Chart{Areas: []Area{{Name: "it", Role: role, Values: []float64{8, 8}}}}
			lines := chart.Lines(s, 12, 9)
			if got := lines[7]; !strings.HasSuffix(got, sign+sign) {
				t.Errorf("a chart has %q for %q", got, sign)
			}
			if got := lines[8]; !strings.HasPrefix(got, sign+" it 8") {
				t.Errorf("a legend has %q for %q", got, sign)
			}
		}
		if got := Gauge(s, 4, 4); got != strings.Repeat(show.Room.Pick(ascii), 4) {
			t.Errorf("what is not held is %q", got)
		}
	}
}
