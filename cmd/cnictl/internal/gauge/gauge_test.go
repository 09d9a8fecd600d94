package gauge

import (
	"testing"

	"cnictl/cmd/cnictl/internal/paint"
)

func TestBar(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		pool  Pool
		width int
		want  string
	}{
		"half":                  {Pool{5, 0, 0, 10}, 10, "#####....."},
		"all kinds":             {Pool{4, 2, 2, 10}, 10, "####%%==.."},
		"full":                  {Pool{27, 0, 0, 27}, 10, "##########"},
		"one of many is seen":   {Pool{700, 1, 1, 737}, 10, "########%="},
		"one assigned is seen":  {Pool{1, 0, 0, 737}, 10, "#........."},
		"limit not known":       {Pool{2, 0, 2, 0}, 8, "####===="},
		"more than the limit":   {Pool{8, 0, 2, 5}, 10, "########=="},
		"empty":                 {Pool{}, 4, "...."},
		"no room":               {Pool{1, 1, 1, 3}, 0, ""},
		"less cells than kinds": {Pool{1, 1, 1, 3}, 2, "#="},
		"IPv6":                  {Pool{12, 0, 1<<48 - 12, 1 << 48}, 8, "#======="},
		"negative":              {Pool{-1, 0, 4, 8}, 8, "====...."},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Bar(tt.pool, tt.width, ASCII(), paint.Palette{})
			if len(got) != tt.width {
				t.Errorf("%q is not %d wide", got, tt.width)
			}
			if got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func FuzzBar(f *testing.F) {
	f.Add(1, 2, 3, 4, 5)
	f.Add(1<<48, 0, 1<<48, 0, 80)
	f.Fuzz(func(t *testing.T, a, c, free, limit, width int) {
		width = min(max(width, 0), 400)
		const most = 1 << 60
		p := Pool{min(a, most), min(c, most), min(free, most), min(limit, most)}
		if got := Bar(p, width, ASCII(), paint.Palette{}); len(got) != width {
			t.Fatalf("%+v in %d: %q", p, width, got)
		}
	})
}
