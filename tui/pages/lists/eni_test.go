package lists

import (
	"testing"

	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
)

func openENI(node, id string) func() pages.Page {
	return func() pages.Page { return NewENI(pages.Open{Screen: "eni", Node: node, ENI: id}) }
}

func TestENI(t *testing.T) {
	still := func(*pagetest.Screen) {}
	for name, o := range map[string][2]string{
		"plain": {pagetest.Plain, "eni-0b2c3d4e5f6071829"}, "prefixes": {pagetest.Prefixes, "eni-0d4e5f60718293a4b"},
		"trunk": {pagetest.Prefixes, "eni-0e5f60718293a4b5c"}, "ipv6": {pagetest.IPv6, "eni-06666666666666666"},
		"upstream": {pagetest.Upstream, "eni-0f60718293a4b5c6d"}, "gone": {pagetest.Plain, "eni-0"}, "down": {pagetest.Down, "eni-0"}, "none": {"", ""},
	} {
		pagetest.Frames(t, name, openENI(o[0], o[1]), still)
	}
	pagetest.Coloured(t, "prefixes", openENI(pagetest.Prefixes, "eni-0d4e5f60718293a4b"), still)
}

func TestENI_AllSizes(t *testing.T) { pagetest.CheckAllSizes(t, NewENI, "eni") }

// TestENI_Filters: filters of cnictl ips match the same rows here, although the cells have other texts.
func TestENI_Filters(t *testing.T) {
	t.Parallel()
	s := pagetest.Open(openENI(pagetest.Plain, "eni-0b2c3d4e5f6071829")(), pagetest.Fleet(), 120, 37)
	list := s.Page.(pages.Listed).List()
	_, all := list.Found()
	for filter, every := range map[string]bool{"state=cooling": false, "state=assigned for>1s": false, "eni=eni-0b2c* card=0": true} {
		err := list.SetFilter(filter)
		shown, _ := list.Found()
		if err != nil || shown == 0 || (shown == all) != every {
			t.Errorf("%s: %d of %d, %v", filter, shown, all, err)
		}
	}
}

func TestENI_Keys(t *testing.T) { pagetest.Keys(t, NewENI(pages.Open{})) }

func BenchmarkENI(b *testing.B) {
	s := pagetest.Open(openENI(pagetest.Prefixes, "eni-0d4e5f60718293a4b")(), pagetest.Fleet(), 200, 60)
	for b.Loop() {
		s.Frame()
	}
}
