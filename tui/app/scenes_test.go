package app

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/colorprofile"

	"cnictl/testenv/text/golden"
	"cnictl/tui/draw"
	"cnictl/tui/pages/pagetest"
)

// scene is a state of the shell with a golden picture.
type scene struct {
	nodes  int
	change func(*Options)
	does   func(*bench)
}

func pressing(keys ...string) func(*bench) { return func(b *bench) { b.press(keys...) } }

// scenes are drawn at every size.
var scenes = map[string]scene{
	"ascii":     {412, func(o *Options) { o.ASCII = true }, pressing()},
	"help":      {412, nil, pressing("?")},
	"page-help": {412, nil, pressing("5", "?")},
	"palette":   {412, nil, func(b *bench) { b.press(":"); b.typed("10-0-1-1") }},
	"commands":  {412, nil, pressing(":")},
	"filter":    {412, nil, func(b *bench) { b.press("/"); b.typed("type=m5.* warm>4") }},
	"sort-menu": {412, nil, pressing("s")},
	"export":    {412, nil, pressing("x")},
	"faults":    {412, nil, pressing("f")},
	"wide":      {412, nil, pressing("w")},
	"paused":    {412, nil, pressing("p")},
	"object":    {412, nil, pressing("y")},
	"diagnostics": {412, nil, func(b *bench) {
		s := b.fleet.Stats()
		s.Problem, s.Widened, s.Interval = "nodes is forbidden: the list cannot be read", true, 45*time.Second
		s.ProblemAt = b.clock.Add(-2 * time.Minute)
		b.send(changed{b.fleet.View(), s})
		b.press("ctrl+g")
	}},
	"forbidden": {0, nil, func(b *bench) {
		s := b.fleet.Stats()
		s.Problem = `list nodes: nodes is forbidden: User "kim" cannot list resource "nodes" at the cluster scope; give it the role of deploy/rbac.yaml`
		s.ProblemAt = b.clock.Add(-2 * time.Minute)
		b.send(changed{b.fleet.View(), s})
	}},
}

// details are drawn at one size.
var details = map[string]scene{
	"empty":      {0, nil, pressing()},
	"large":      {5000, nil, pressing()},
	"bad-filter": {412, nil, func(b *bench) { b.press("/"); b.typed("ok re:("); b.press("end") }},
	"sorted":     {412, nil, pressing("s", "i")},
	"marks":      {412, nil, pressing("down", "space", "down", "down", "ctrl+space")},
}

// fleets are shared: no scene changes them.
var fleets = map[int]func() *pagetest.Source{
	0:    sync.OnceValue(func() *pagetest.Source { return pagetest.NewSource(0, 20) }),
	412:  sync.OnceValue(func() *pagetest.Source { return pagetest.NewSource(412, 20) }),
	5000: sync.OnceValue(func() *pagetest.Source { return pagetest.NewSource(5000, 20) }),
}

func (s scene) open(t *testing.T, change func(*Options), width, height int) *bench {
	t.Helper()
	b := newBench(t, fleets[s.nodes](), func(o *Options) {
		if s.change != nil {
			s.change(o)
		}
		if change != nil {
			change(o)
		}
	})
	b.resize(width, height)
	b.change()
	s.does(b)
	checkFrame(t, b.Model, "drawn")
	return b
}

func TestScenes(t *testing.T) {
	t.Parallel()
	for name, scene := range scenes {
		for _, size := range sizes {
			t.Run(fmt.Sprintf("%s-%dx%d", name, size[0], size[1]), func(t *testing.T) {
				t.Parallel()
				picture(t, scene.open(t, nil, size[0], size[1]), size, colorprofile.ASCII)
			})
		}
	}
	for name, scene := range details {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := scene.open(t, nil, 120, 40)
			golden.File(t, "testdata/"+t.Name()+".golden", []byte(b.frame(t, colorprofile.ASCII)+"\n"))
		})
	}
}

// TestScenesInColour draws the overlays as a terminal of sixteen colours shows them, and the one
// that uses most colours in all themes.
func TestScenesInColour(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"help", "palette", "sort-menu", "object", "diagnostics", "faults", "paused", "forbidden"} {
		themes := []string{draw.Dark}
		if name == "faults" {
			themes = append(themes, draw.Light, draw.Mono)
		}
		for _, colours := range themes {
			t.Run(name+"-"+colours, func(t *testing.T) {
				t.Parallel()
				b := scenes[name].open(t, func(o *Options) { o.Theme = colours }, 80, 24)
				golden.File(t, "testdata/"+t.Name()+".golden", []byte(b.frame(t, colorprofile.ANSI)+"\n"))
			})
		}
	}
}
