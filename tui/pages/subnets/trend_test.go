package subnets

import (
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
	"cnictl/tui/pages/parts"
	"cnictl/tui/source/sourcetest"
)

func TestWords(t *testing.T) {
	t.Parallel()
	of := func(apart time.Duration, free ...int) store.Readings {
		var r store.Readings
		for i, n := range free {
			at := sourcetest.Start().Add(time.Duration(i) * apart)
			r = r.Take(store.SubnetUse{Subnet: introspect.Subnet{Available: &n, AsOf: &at}})
		}
		return r
	}
	for want, r := range map[string]store.Readings{
		"measured from now on: EC2's count is read every 10 minutes and before an ENI is made": nil,
		"~15h left at -60/h, measured over 50m":                                                of(10*time.Minute, 1000, 990, 981, 970, 960, 950),
		"+60/h over 50m (6 readings): too little for a forecast":                               of(10*time.Minute, 900, 910, 920, 930, 940, 950),
		"no change over 60m (2 readings): too little for a forecast":                           of(time.Hour, 900, 900),
	} {
		if got := words(r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The addresses of all nodes are read for the map alone.
func TestFocus_Maps(t *testing.T) {
	t.Parallel()
	s := pagetest.Open(New(pages.Open{}), pagetest.Fleet(), 120, 37)
	want := func(maps bool, when string) {
		t.Helper()
		if f := s.Page.Focus(s.Context()); f.Maps != maps || f.Open != "" {
			t.Errorf("%s: %+v, want maps %v", when, f, maps)
		}
	}
	want(true, "at first")
	s.Do(parts.ActionZoom)
	want(false, "the table alone")
	s.Do(keymap.NextPane)
	want(true, "the map alone")
	if f := New(pages.Open{}).Focus(s.Context()); f.Maps {
		t.Error("maps of no subnet")
	}
}
