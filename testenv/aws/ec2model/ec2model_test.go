package ec2model

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"cnictl/capacity/subnet"
)

// TestSpace: what a new subnet gives is what capacity/subnet computes, and one address of a /28
// spoils it.
func TestSpace(t *testing.T) {
	t.Parallel()
	for _, cidr := range []string{"10.0.0.0/28", "10.0.0.0/27", "10.0.0.0/26", "10.0.0.0/24", "10.0.0.0/16"} {
		want, err := subnet.Parse(cidr)
		if err != nil {
			t.Fatal(err)
		}
		s := NewSpace(want.CIDR)
		if s.Free() != want.Free || s.FreeBlocks() != want.Blocks || len(s.FindBlocks(s.Size(), 0)) != want.Blocks {
			t.Errorf("%s has %d addresses and %d /28s, want %d and %d", cidr, s.Free(), s.FreeBlocks(), want.Free, want.Blocks)
		}
		first := want.CIDR.Addr().Next().Next().Next().Next()
		if got := s.Find(s.Size(), 0); len(got) != want.Free || got[0].Addr() != first || got[0] == s.FindLast(1)[0] {
			t.Errorf("%s gives %d addresses, the first %v", cidr, len(got), got[0])
		}
		for at := 0; at < s.Size(); at += BlockSize {
			s.Mark(s.Find(1, at)[0], true)
		}
		if s.FreeBlocks() != 0 || s.FindBlocks(1, 0) != nil {
			t.Errorf("%s has a /28 although an address of each is taken", cidr)
		}
	}
}

// TestSpace_Search: a search wraps around, and finds what was freed below it.
func TestSpace_Search(t *testing.T) {
	t.Parallel()
	s := NewSpace(netip.MustParsePrefix("10.0.0.0/26"))
	if got := s.Find(3, 61); !slices.Equal(got, cidrs("10.0.0.61/32", "10.0.0.62/32", "10.0.0.4/32")) {
		t.Errorf("three from the end on: %v", got)
	}
	if got := s.FindBlocks(3, 32); !slices.Equal(got, cidrs("10.0.0.32/28", "10.0.0.16/28")) {
		t.Errorf("three /28s: %v", got)
	}
	all := s.Find(59, 0)
	for _, a := range all {
		s.Mark(a, true)
	}
	if s.Free() != 0 || s.Find(1, 0) != nil {
		t.Errorf("%d free after all were taken", s.Free())
	}
	s.Mark(all[7], false)
	if got := s.Find(2, 40); !slices.Equal(got, all[7:8]) || !s.IsFree(all[7]) || s.IsFree(all[8]) || s.IsFree(netip.MustParsePrefix("10.0.1.0/32")) {
		t.Errorf("the freed one: %v", got)
	}
}

func cidrs(all ...string) (out []netip.Prefix) {
	for _, c := range all {
		out = append(out, netip.MustParsePrefix(c))
	}
	return out
}

func TestSpace6(t *testing.T) {
	t.Parallel()
	s := NewSpace6(netip.MustParsePrefix("2001:db8::/64"))
	for _, c := range append(s.Find(1), s.FindBlocks(1)...) {
		s.Mark(c, true)
	}
	if got := append(s.Find(1), s.FindBlocks(2)...); !slices.Equal(got, cidrs("2001:db8::5/128", "2001:db8::2:0:0:0/80", "2001:db8::3:0:0:0/80")) {
		t.Errorf("beside a taken address and prefix: %v", got)
	}
}

// TestBucket: as documented for the actions that change something.
func TestBucket(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_790_000_000, 0)
	b := NewBucket(Mutating, now)
	took := func() (n int) {
		for b.Take(now) {
			n++
		}
		return n
	}
	if n := took(); n != 50 {
		t.Errorf("%d at once", n)
	}
	now = now.Add(2 * time.Second)
	if n := took(); n != 10 {
		t.Errorf("%d after two seconds", n)
	}
	now = now.Add(-time.Hour)
	if n := took(); n != 0 {
		t.Errorf("%d after the clock was set back", n)
	}
	now = now.Add(2 * time.Hour)
	if n := took(); n != 50 {
		t.Errorf("%d after hours", n)
	}
}
