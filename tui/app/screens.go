package app

import (
	"cnictl/tui/pages"
	"cnictl/tui/pages/overview"
)

// screen is one that the stack can hold.
type screen struct {
	name  string
	title string
	new   pages.New
	needs string // of Open: a screen of one thing; "" = it stands alone and has a digit
}

// screens are all there are, those that stand alone in the order of their digits.
func screens() []screen {
	return []screen{
		{"overview", "Nodes", func(o pages.Open) pages.Page { return overview.New(o) }, ""},
	}
}

func screenOf(name string) (screen, bool) {
	for _, s := range screens() {
		if s.name == name {
			return s, true
		}
	}
	return screen{}, false
}

// digits are the screens that stand alone.
func digits() []screen {
	var out []screen
	for _, s := range screens() {
		if s.needs == "" {
			out = append(out, s)
		}
	}
	return out
}
