package pagetest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/colorprofile"

	"cnictl/tui/pages"
	"cnictl/tui/theme"
)

var update = flag.Bool("update", false, "write the golden files anew")

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
	path := filepath.Join("testdata", test, name+".golden")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test -update writes it)", err)
	}
	if got := b.String(); got != string(want) {
		t.Errorf("%s differs (go test -update writes it anew):\n%s", path, got)
	}
}

// Frames holds a page to golden files at every size, and in colour at one.
func Frames(t *testing.T, name string, open func() pages.Page, act func(*Screen)) {
	for _, size := range Sizes {
		t.Run(fmt.Sprintf("%s/%dx%d", name, size.Width, size.Height), func(t *testing.T) {
			t.Parallel()
			s := Open(open(), Fleet(), size.Width, size.Height)
			act(s)
			Check(t, s)
			Golden(t, fmt.Sprintf("%s-%dx%d", name, size.Width, size.Height), s.Frame())
		})
	}
}

// Coloured holds a page to golden files in the themes, with the colours of a terminal of
// sixteen.
func Coloured(t *testing.T, name string, open func() pages.Page, act func(*Screen)) {
	for _, th := range []string{"dark", "light"} {
		t.Run(name+"/"+th, func(t *testing.T) {
			t.Parallel()
			s := Open(open(), Fleet(), 120, 37)
			s.Theme = theme.New(th, theme.Terminal{})
			act(s)
			Check(t, s)
			var out bytes.Buffer
			w := &colorprofile.Writer{Forward: &out, Profile: colorprofile.ANSI}
			if _, err := w.WriteString(strings.Join(s.Frame(), "\n")); err != nil {
				t.Fatal(err)
			}
			Golden(t, name+"-"+th, strings.Split(out.String(), "\n"))
		})
	}
}
