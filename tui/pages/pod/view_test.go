package pod

import (
	"testing"

	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
)

func open(o pages.Open) func() pages.Page { return func() pages.Page { return New(o) } }

func TestFrames(t *testing.T) {
	still := func(*pagetest.Screen) {}
	for name, o := range map[string]pages.Open{
		"plain":     {Node: pagetest.Plain, Pod: "shop/cart-7d9f-1", IP: "10.0.3.42"},
		"cooling":   {Node: pagetest.Plain, IP: "10.0.4.13"},
		"free":      {Node: pagetest.Plain, IP: "10.0.4.17"},
		"nowhere":   {Node: pagetest.Plain, IP: "192.0.2.1"},
		"branch":    {Node: pagetest.Prefixes, Pod: "pay/ledger-0"},
		"pending":   {Node: pagetest.Prefixes, Pod: "pay/ledger-1"},
		"broken":    {Node: pagetest.Prefixes, Pod: "pay/broken"},
		"upstream":  {Node: pagetest.Upstream, Pod: "shop/cart-7d9f-1", IP: "10.0.2.71"},
		"ipv6":      {Node: pagetest.IPv6, Pod: "web/front-03"},
		"down":      {Node: pagetest.Down, Pod: "shop/a"},
		"anywhere":  {Pod: "shop/a"},
		"malformed": {IP: "not an address"},
	} {
		pagetest.Frames(t, name, open(o), still)
	}
	pagetest.Coloured(t, "plain", open(pages.Open{Node: pagetest.Plain, Pod: "shop/cart-7d9f-1"}), still)
}

func TestAllSizes(t *testing.T) { pagetest.CheckAllSizes(t, New, "pod") }

func TestKeys(t *testing.T) { pagetest.Keys(t, New(pages.Open{})) }

func BenchmarkLines(b *testing.B) {
	s := pagetest.Open(New(pages.Open{Node: pagetest.Plain, Pod: "shop/cart-7d9f-1"}), pagetest.Fleet(), 200, 60)
	for b.Loop() {
		s.Frame()
	}
}
