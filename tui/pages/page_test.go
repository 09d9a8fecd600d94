package pages

import (
	"fmt"
	"testing"
)

func TestCopy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"one":             {[]string{"shop/cart-1"}, "shop/cart-1"},
		"lines":           {[]string{"kind: Pod", "  é: 'x'", ""}, "kind: Pod\n  é: 'x'\n"},
		"carriage return": {[]string{"a\rreboot\r", "b"}, "a\\rreboot\\r\nb"},
		"line break":      {[]string{"a\nreboot\n"}, `a\nreboot\n`},
		"end of paste":    {[]string{"a\x1b[201~reboot\u009b201~"}, `a\x1b[201~reboot\u009b201~`},
		"hidden":          {[]string{"a\u202eb\x00\x7f\xff"}, `a\u202eb\x00\x7f\xff`},
	} {
		if got := fmt.Sprint(Copy(c.lines...)()); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
