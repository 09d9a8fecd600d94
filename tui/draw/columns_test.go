package draw

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// shown writes the widths of the columns that are shown.
func (l *Layout) shown() string {
	var out []string
	for i, w := range l.Widths {
		if l.Shown[i] {
			out = append(out, fmt.Sprint(w))
		} else {
			out = append(out, "-")
		}
	}
	return strings.Join(out, " ")
}

// TestLayout: what a table gives up as it gets narrower, and what it gains as it gets wider.
func TestLayout(t *testing.T) {
	t.Parallel()
	columns := []Column{
		{Want: 20, Cut: 16, Floor: 4},                        // a name
		{Want: 10, Drop: 1, Floor: 4},                        // dropped last
		{Want: 10, Drop: 2, Narrow: 6, Floor: 4},             // narrowed before any is dropped
		{Want: 5, Extra: true, Drop: 4, Floor: 5},            // the second extra one
		{Want: 5, Extra: true, Drop: 3, Floor: 5},            // the first
		{Want: 8, Most: 12, Floor: 4},                        // a bar
		{Want: 30, Text: true, Least: 12, Floor: 6, Drop: 0}, // a sentence
	}
	for _, x := range []struct {
		room int
		want string
	}{
		{200, "20 10 10 5 5 12 30"},
		{104, "20 10 10 5 5 12 30"}, // all fit, the bar as wide as it may be
		{102, "20 10 10 5 5 10 30"}, // the bar grows last
		{100, "20 10 10 5 5 8 30"},
		{99, "20 10 10 5 5 8 29"}, // an extra column is worth more than the end of a sentence
		{82, "20 10 10 5 5 8 12"},
		{81, "20 10 10 - 5 8 18"},
		{75, "20 10 10 - 5 8 12"},
		{74, "20 10 10 - - 8 18"},
		{68, "20 10 10 - - 8 12"},
	} {
		all := slices.Clone(columns)
		all[0].Cut = 0
		l := NewLayout(all, 2, x.room)
		l.Fit()
		l.Widen()
		l.Grow()
		if got := l.shown(); got != x.want {
			t.Errorf("in %d: %s, want %s", x.room, got, x.want)
		}
	}
	for _, x := range []struct {
		room int
		want string
	}{
		{86, "20 10 10 - - 8 30"}, {85, "19 10 10 - - 8 30"}, {82, "16 10 10 - - 8 30"}, // the name is cut
		{81, "16 10 10 - - 8 29"}, {64, "16 10 10 - - 8 12"}, // then the sentence
		{63, "16 10 9 - - 8 12"}, {60, "16 10 6 - - 8 12"}, // then what may be narrowed
		{59, "16 10 - - - 8 19"}, {52, "16 10 - - - 8 12"}, // then columns go
		{51, "16 - - - - 8 23"}, {40, "16 - - - - 8 12"},
		{39, "15 - - - - 8 12"}, {30, "9 - - - - 8 9"}, {10, "4 - - - - 4 6"}, // what is left gets narrow
	} {
		l := NewLayout(columns, 2, x.room)
		l.Fit()
		if l.Over() > 0 {
			l.Widths[6] -= l.slack(6)
			l.Squeeze()
		}
		if got := l.shown(); got != x.want {
			t.Errorf("in %d: %s, want %s", x.room, got, x.want)
		}
	}
}

// TestLayout_Fits: whatever the columns are, they fit unless none may be narrowed or dropped, and room
// is left only if no column wants it.
func TestLayout_Fits(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	for range 5000 {
		columns := make([]Column, 1+r.IntN(9))
		for i := range columns {
			c := Column{Want: r.IntN(40), Floor: 1, Extra: r.IntN(4) == 0, Text: r.IntN(4) == 0, Least: r.IntN(20)}
			if r.IntN(2) == 0 {
				c.Drop = 1 + r.IntN(5)<<8 + i
			}
			if r.IntN(4) == 0 {
				c.Narrow = 1 + r.IntN(10)
			}
			columns[i] = c
		}
		l := NewLayout(columns, 2, r.IntN(150))
		l.Fit()
		fitted := l.Over() <= 0
		if !fitted && l.dropped() >= 0 {
			t.Fatalf("%+v: %s is over %d", columns, l.shown(), l.Over())
		}
		if l.Widen(); fitted && l.Over() > 0 {
			t.Fatalf("%+v: extra columns do not fit: %s", columns, l.shown())
		}
		if l.Squeeze(); l.Over() > 0 && strings.Trim(l.shown(), "01- ") != "" {
			t.Fatalf("%+v: %s is over %d", columns, l.shown(), l.Over())
		}
	}
}
