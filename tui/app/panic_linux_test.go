package app_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/fleet/watch"
	"cnictl/testenv"
	"cnictl/testenv/text/terminal"
	"cnictl/tui/app"
	"cnictl/tui/pages/pagetest"
)

var locale = []string{"TERM=xterm-256color", "LC_ALL=C.UTF-8"}

// breaking is a source that panics in one of its methods after a refresh.
type breaking struct {
	*pagetest.Source
	in    string
	armed atomic.Bool
}

func (b *breaking) Refresh() { b.armed.Store(true) }

func (b *breaking) breakIn(method string) {
	if b.in == method && b.armed.Load() {
		panic("broken in " + method)
	}
}

// Title is called only by View.
func (b *breaking) Title() string { b.breakIn("Title"); return b.Source.Title() }

// Now is called first by Update.
func (b *breaking) Now() time.Time { b.breakIn("Now"); return b.Source.Now() }

// Detail is called by a command, outside the program's loop.
func (b *breaking) Detail(ctx context.Context, node string, want watch.Want, q watch.Query) watch.Detail {
	b.breakIn("Detail")
	return b.Source.Detail(ctx, node, want, q)
}

// TestRun_Panic: whatever panics below the screens, the terminal is restored and shows what
// panicked. The test starts itself on a terminal, with the panicking method as its argument.
func TestRun_Panic(t *testing.T) {
	if flag.NArg() > 0 {
		err := app.Run(t.Context(), app.Options{
			Source: &breaking{Source: pagetest.NewSource(5, 1), in: flag.Arg(0)}, Now: time.Now, In: os.Stdin, Out: os.Stdout, Environ: locale,
		})
		fmt.Fprintf(os.Stdout, "Run: panic %v: %v\n", errors.Is(err, tea.ErrProgramPanic), err)
		return
	}
	t.Parallel()
	for _, method := range []string{"Title", "Now", "Detail"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			x, err := terminal.Start(t.Context(), terminal.Options{Columns: 100, Rows: 24, Keep: true, Env: locale}, os.Args[0], "-test.run=^TestRun_Panic$", method)
			if err != nil {
				t.Fatal(err)
			}
			defer x.Kill()
			if err := x.Await(testenv.Context(t), 0, func(s *terminal.Screen) bool { return strings.Contains(s.String(), "ip-10-0-0-") }); err != nil {
				t.Fatal(err)
			}
			if err := x.Press("r\r"); err != nil { // enter opens the node, which is then read
				t.Fatal(err)
			}
			if _, err := x.Ended(testenv.Context(t)); err != nil {
				t.Fatal(err)
			}
			_, after, restored := strings.Cut(x.Drawn(), "\x1b[?1049l")
			if cooked, err := x.Cooked(); !restored || !cooked || err != nil || !strings.Contains(after, "\x1b[?25h") {
				t.Errorf("restored %v, cooked %v, %v: %q", restored, cooked, err, x.Drawn())
			}
			for _, want := range []string{"broken in " + method, "Run: panic true: the screens failed: "} {
				if !strings.Contains(after, want) {
					t.Errorf("no %q after the screens in %q", want, after)
				}
			}
		})
	}
}
