package overview

import (
	"testing"

	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
	"cnictl/tui/source/sourcetest"
)

func open() pages.Page { return New(pages.Open{}) }

func TestFrames(t *testing.T) {
	still := func(*pagetest.Screen) {}
	pagetest.Frames(t, "kinds", open, still)
	pagetest.Coloured(t, "kinds", open, still)
	pagetest.Frames(t, "ascii", open, func(s *pagetest.Screen) { s.ASCII = true })
	pagetest.FramesOf(t, "many", func() *sourcetest.Fleet { return sourcetest.New(500, 2) }, open, still)
	pagetest.FramesOf(t, "many-end", func() *sourcetest.Fleet { return sourcetest.New(500, 2) }, open, func(s *pagetest.Screen) { s.Do(keymap.Last) })
	pagetest.FramesOf(t, "reading", pagetest.Nobody, open, still)
	pagetest.FramesOf(t, "empty", pagetest.Emptied, open, still)
	pagetest.Frames(t, "old", open, func(s *pagetest.Screen) { s.Wait(90) })
}

func TestBears(t *testing.T) {
	pagetest.Bears(t, func(o pages.Open) pages.Page { return New(o) }, "overview")
}

func TestKeys(t *testing.T) { pagetest.Keys(t, New(pages.Open{})) }
