package human

import (
	"slices"
	"testing"
)

func TestNatural(t *testing.T) {
	t.Parallel()
	want := []string{
		"", "-", "0", "00", "1", "2", "10", "a", "a0", "a00", "a01", "a1", "a1b", "a1b2", "a1b10", "a02", "a2", "a10",
		"ip-10-0-1-9", "ip-10-0-1-17", "ip-10-0-2-1", "ip-10-0-10-1", "node", "node-4", "node-34", "node-34a", "node-35", "node-99999999999999999999", "node-100000000000000000000", "nodes",
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, Natural)
	if !slices.Equal(got, want) {
		t.Errorf("ordered %q, want %q", got, want)
	}
}

// Natural is a total order: names compare equal only to themselves.
func FuzzNatural(f *testing.F) {
	for _, s := range [][3]string{{"node-4", "node-34", "node-034"}, {"1a", "01b", "1"}, {"", "0", "00"}, {"a1", "a01b", "a1c"}} {
		f.Add(s[0], s[1], s[2])
	}
	f.Fuzz(func(t *testing.T, a, b, c string) {
		if Natural(a, b) != -Natural(b, a) || (Natural(a, b) == 0) != (a == b) {
			t.Fatalf("%q and %q: %d, %d", a, b, Natural(a, b), Natural(b, a))
		}
		if Natural(a, b) < 0 && Natural(b, c) < 0 && Natural(a, c) >= 0 {
			t.Fatalf("%q < %q < %q, and not %q < %q", a, b, c, a, c)
		}
	})
}
