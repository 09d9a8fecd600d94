package draw

import (
	"math"
	"testing"
)

func TestPoolGauge(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		pool  Pool
		width int
		want  string
	}{
		"half":                  {Pool{5, 0, 0, 10, false}, 10, "#####....."},
		"all kinds":             {Pool{4, 2, 2, 10, false}, 10, "####%%==.."},
		"full":                  {Pool{27, 0, 0, 27, false}, 10, "##########"},
		"one of many is seen":   {Pool{700, 1, 1, 737, false}, 10, "########%="},
		"one assigned is seen":  {Pool{1, 0, 0, 737, false}, 10, "#........."},
		"one free is seen":      {Pool{736, 0, 1, 737, false}, 10, "#########="},
		"limit not known":       {Pool{2, 0, 2, 0, false}, 8, "####===="},
		"more than the limit":   {Pool{8, 0, 2, 5, false}, 10, "########=="},
		"empty":                 {Pool{}, 4, "...."},
		"no room":               {Pool{1, 1, 1, 3, false}, 0, ""},
		"less cells than kinds": {Pool{1, 1, 1, 3, false}, 2, "#%"},
		"IPv6":                  {Pool{12, 0, 1<<48 - 12, 1 << 48, false}, 8, "#======="},
		"negative":              {Pool{-1, 0, 4, 8, false}, 8, "====...."},
	} {
		if got := tt.pool.Gauge(Style{ASCII: true}, tt.width); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestPoolAlarms(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		pool Pool
		want Role
	}{
		"room":              {Pool{84, 0, 1, 100, true}, BarUsed},
		"nearly full":       {Pool{85, 0, 1, 100, true}, WarnRow},
		"none free":         {Pool{14, 0, 0, 56, true}, BadRow},
		"nothing held":      {Pool{0, 0, 0, 56, true}, BarUsed},
		"limit unknown":     {Pool{99, 0, 1, 0, true}, BarUsed},
		"of an ENI, silent": {Pool{14, 0, 0, 14, false}, BarUsed},
	} {
		if got := x.pool.role(); got != x.want {
			t.Errorf("%s: role %d, want %d", name, got, x.want)
		}
	}
	if got := (Pool{}).Add(Pool{1, 2, 3, 10, true}).Add(Pool{1, 0, 0, 0, true}); got != (Pool{2, 2, 3, 11, true}) {
		t.Errorf("the sum is %+v", got)
	}
}

func FuzzPoolGauge(f *testing.F) {
	f.Add(1, 2, 3, 4, 5)
	f.Add(1<<48, 0, 1<<48, 0, 80)
	f.Add(math.MaxInt, math.MaxInt, math.MinInt, -1, 8)
	f.Fuzz(func(t *testing.T, assigned, cooling, free, limit, width int) {
		p := Pool{assigned, cooling, free, limit, limit%2 == 0}
		width = min(max(width, 0), 400)
		if got := p.Gauge(Style{ASCII: true}, width); len(got) != width {
			t.Fatalf("%+v in %d: %q", p, width, got)
		}
	})
}
