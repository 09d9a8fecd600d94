package pagetest

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/colorprofile"

	"cnictl/testenv/golden"
	"cnictl/tui/pages"
	"cnictl/tui/sourcetest"
	"cnictl/tui/theme"
)

// Sizes are those of terminals that every screen is looked at in, less the three lines
// of the app.
var Sizes = []struct{ Width, Height int }{{60, 12}, {80, 21}, {120, 37}, {200, 57}}

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

// Frames holds a page over the fleet of every kind to golden files at every size.
func Frames(t *testing.T, name string, open func() pages.Page, act func(*Screen)) {
	FramesOf(t, name, Fleet, open, act)
}

// FramesOf holds a page over a fleet to golden files at every size.
func FramesOf(t *testing.T, name string, fleet func() *sourcetest.Fleet, open func() pages.Page, act func(*Screen)) {
	for _, size := range Sizes {
		t.Run(fmt.Sprintf("%s/%dx%d", name, size.Width, size.Height), func(t *testing.T) {
			t.Parallel()
			s := Open(open(), fleet(), size.Width, size.Height)
			act(s)
			Check(t, s)
			Golden(t, fmt.Sprintf("%s-%dx%d", name, size.Width, size.Height), s.Frame())
		})
	}
}

// Coloured holds a page to golden files with the sixteen colours of a terminal: in the
// dark theme at every size, in the light one at one.
func Coloured(t *testing.T, name string, open func() pages.Page, act func(*Screen)) {
	for _, size := range Sizes {
		t.Run(fmt.Sprintf("%s/dark/%dx%d", name, size.Width, size.Height), func(t *testing.T) {
			t.Parallel()
			coloured(t, fmt.Sprintf("%s-dark-%dx%d", name, size.Width, size.Height), theme.Terminal{Colour: true}, Open(open(), Fleet(), size.Width, size.Height), act)
		})
	}
	t.Run(name+"/light", func(t *testing.T) {
		t.Parallel()
		coloured(t, name+"-light-120x37", theme.Terminal{Colour: true, Light: true}, Open(open(), Fleet(), 120, 37), act)
	})
}

func coloured(t *testing.T, file string, term theme.Terminal, s *Screen, act func(*Screen)) {
	t.Helper()
	s.Theme = theme.New(theme.Auto, term)
	act(s)
	Check(t, s)
	var out bytes.Buffer
	w := &colorprofile.Writer{Forward: &out, Profile: colorprofile.ANSI}
	if _, err := w.WriteString(strings.Join(s.Frame(), "\n")); err != nil {
		t.Fatal(err)
	}
	if s.Theme.Name == theme.Mono {
		t.Error("the theme has no colour")
	}
	Golden(t, file, strings.Split(out.String(), "\n"))
}
