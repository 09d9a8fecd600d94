package pod

import (
	"testing"

	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
)

// A pod or an address that was opened without its node is found on the node that told of
// it, and looked for again with what comes later.
func TestHome(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]pages.Open{
		"a pod":      {Pod: "shop/cart-7d9f-1"},
		"an address": {IP: "10.0.3.42"},
	} {
		s := pagetest.Open(New(o), pagetest.Fleet(), 120, 37)
		if len(s.Asked) == 0 || s.Asked[0].Node != pagetest.Plain {
			t.Errorf("%s: asked %+v", name, s.Asked)
		}
	}
	s := pagetest.Open(New(pages.Open{Pod: "shop/none"}), pagetest.Fleet(), 120, 37)
	if s.Wait(5); len(s.Asked) != 0 {
		t.Errorf("of a pod that nobody knows: asked %+v", s.Asked)
	}
}
