package logs

import (
	"testing"

	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
)

func TestFrames(t *testing.T) {
	still := func(*pagetest.Screen) {}
	for name, o := range map[string]pages.Open{
		"all": {}, "plain": {Node: pagetest.Plain}, "pod": {Node: pagetest.Plain, Pod: "shop/cart-7d9f-1"}, "upstream": {Node: pagetest.Upstream},
		"down": {Node: pagetest.Down}, "nothing": {Node: pagetest.Plain, Pod: "shop/none"}, "hostile": {Node: pagetest.Hostile},
	} {
		pagetest.Frames(t, name, func() pages.Page { return New(o) }, still)
	}
	pagetest.Frames(t, "wrapped", func() pages.Page { return New(pages.Open{}) }, func(s *pagetest.Screen) { s.Do(keymap.Wrap, keymap.Level) })
	pagetest.Frames(t, "held", func() pages.Page { return New(pages.Open{}) }, func(s *pagetest.Screen) { s.Do(keymap.Hold, "up", "up") })
	pagetest.Coloured(t, "all", func() pages.Page { return New(pages.Open{}) }, still)
}

func TestAllSizes(t *testing.T) { pagetest.CheckAllSizes(t, New, "logs") }

func TestKeys(t *testing.T) { pagetest.Keys(t, New(pages.Open{})) }

func BenchmarkLines(b *testing.B) {
	s := pagetest.Open(New(pages.Open{}), pagetest.Fleet(), 200, 60)
	for b.Loop() {
		s.Frame()
	}
}

// TestFilters: filters of cnictl events match the same lines here.
func TestFilters(t *testing.T) {
	t.Parallel()
	s := pagetest.Open(New(pages.Open{Node: pagetest.Plain}), pagetest.Fleet(), 120, 37)
	s.Wait(3)
	list := s.Page.(pages.Listed).List()
	_, all := list.Found()
	for _, filter := range []string{"from=daemon", "from=kubernetes type=warning", "what=action-done object=eni-*", "component=ipamd", `message="eni-* warm-ip-target in 0.6s"`, "times>=1 ago>1s what!=-"} {
		err := list.SetFilter(filter)
		if shown, _ := list.Found(); err != nil || shown == 0 || shown >= all {
			t.Errorf("%s: %d of %d, %v", filter, shown, all, err)
		}
	}
}
