package figure

import (
	"bytes"
	"testing"
	"time"
)

func TestNumber(t *testing.T) {
	t.Parallel()
	for want, n := range map[string]Number{
		"–": {}, "0": Of(0), "3": Of(3), "0.50": Of(0.5), "12.3": Of(12.34), "1235": Of(1234.6), "2": Of(6).Over(Of(3)), "1.50": Of(3).Times(0.5),
	} {
		if n.String() != want {
			t.Errorf("%+v is %q, want %q", n, n, want)
		}
	}
	for _, n := range []Number{Of(1).Over(Of(0)), Of(1).Over(Number{}), Number{}.Over(Of(1)), Number{}.Times(2)} {
		if n.Known {
			t.Errorf("%+v is known", n)
		}
	}
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	list := []time.Duration{4, 1, 3, 2}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 3, 0.99: 4, 1: 4} {
		if got := Quantile(list, q); got != want {
			t.Errorf("%v: %d, want %d", q, got, want)
		}
	}
	if Quantile(nil, 0.5) != 0 {
		t.Error("of nothing")
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	Lines(&out, [][]string{{"", "ms", "of"}, {"größe", "1", "0.50"}, {"a", "100", ""}})
	if want := "          ms    of\n  größe    1  0.50\n  a      100      \n"; out.String() != want {
		t.Errorf("%q, want %q", &out, want)
	}
}
