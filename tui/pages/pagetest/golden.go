package pagetest

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/colorprofile"

	"cnictl/testenv/text/golden"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
)

// sizes are the terminal sizes at which screens are drawn, less the three lines of the app.
// The smallest and a usual one have golden files; [CheckAllSizes] checks a page at more sizes.
var sizes = []struct {
	width, height int
	golden        bool
}{{60, 12, true}, {80, 21, false}, {120, 37, true}, {200, 57, false}}

// Golden compares a frame with testdata/<test>/<name>.golden.
func Golden(t *testing.T, name string, lines []string) {
	t.Helper()
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimRight(l, " "))
		b.WriteByte('\n')
	}
	test, _, _ := strings.Cut(t.Name(), "/")
	golden.File(t, filepath.Join("testdata", test, name+".golden"), []byte(b.String()))
}

// Frames compares a page over [Fleet] with golden files.
func Frames(t *testing.T, name string, open func() pages.Page, act func(*Screen)) {
	FramesOf(t, name, Fleet, open, act)
}

// FramesOf compares a page over a fleet with golden files.
func FramesOf(t *testing.T, name string, fleet func() *Source, open func() pages.Page, act func(*Screen)) {
	for _, size := range sizes {
		t.Run(fmt.Sprintf("%s/%dx%d", name, size.width, size.height), func(t *testing.T) {
			t.Parallel()
			s := Open(open(), fleet(), size.width, size.height)
			act(s)
			Check(t, s)
			if size.golden {
				Golden(t, fmt.Sprintf("%s-%dx%d", name, size.width, size.height), s.Frame())
			}
		})
	}
}

// Coloured compares a page with a golden file in the 16 colours of a terminal.
func Coloured(t *testing.T, name string, open func() pages.Page, act func(*Screen)) {
	t.Run(name+"/dark", func(t *testing.T) {
		t.Parallel()
		s := Open(open(), Fleet(), 120, 37)
		s.Theme = draw.NewTheme(draw.Auto, draw.Terminal{Colour: true})
		act(s)
		Check(t, s)
		var out bytes.Buffer
		w := &colorprofile.Writer{Forward: &out, Profile: colorprofile.ANSI}
		if _, err := w.WriteString(strings.Join(s.Frame(), "\n")); err != nil {
			t.Fatal(err)
		}
		if s.Theme.Name == draw.Mono {
			t.Error("the theme has no colour")
		}
		Golden(t, name+"-dark-120x37", strings.Split(out.String(), "\n"))
	})
}
