package app

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"

	"cnictl/tui/source/sourcetest"
)

func TestPlainPrintsScreens(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	b := newBench(t, sourcetest.New(20, 3), func(o *Options) { o.Out = &out })
	p := newPlain(b.o, utf8Locale, b.keys, b.fx)
	if err := p.screen(); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"filter type=m5.large", "sort node", "filter re:(", "yaml " + sourcetest.Name(6), "back", "help", "keys", "nothing", "export csv"} {
		out.WriteString("> " + line + "\n")
		if done, err := p.line(line); done || err != nil {
			t.Fatal(line, done, err)
		}
	}
	if done, err := p.line("quit"); !done || err != nil {
		t.Error(done, err)
	}
	if len(b.files) != 1 {
		t.Errorf("exported %v", b.files)
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("there are escapes in it")
	}
	golden.RequireEqual(t, out.Bytes())
}

func TestPlainEndsWithItsInput(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	o := Options{Source: sourcetest.New(2, 1), Now: sourcetest.Start, Environ: environ{"ACCESSIBLE=1"}, Out: &out, In: strings.NewReader("")}
	if err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "ip-10-0-0-4") {
		t.Errorf("it prints nothing:\n%s", out.String())
	}
}

func TestRunNeedsATerminal(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	o := Options{Source: sourcetest.New(1, 1), Now: sourcetest.Start, Environ: utf8Locale, Out: &bytes.Buffer{}, In: strings.NewReader("")}
	if err := Run(ctx, o); !errors.Is(err, ErrNoTerminal) {
		t.Errorf("%v", err)
	}
	o.Theme = "pink"
	if err := Run(ctx, o); err == nil || !strings.Contains(err.Error(), "pink") {
		t.Errorf("%v", err)
	}
	o.Theme, o.Keys = "", map[string][]string{"up": {"j"}, "down": {"j"}}
	if err := Run(ctx, o); err == nil || !strings.Contains(err.Error(), `"j"`) {
		t.Errorf("%v", err)
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env                           environ
		utf8, dumb, light, accessible bool
	}{
		{environ{"LANG=de_CH.UTF-8", "TERM=xterm"}, true, false, false, false},
		{environ{"LANG=C.UTF-8", "LC_ALL=C", "TERM=dumb"}, false, true, false, false},
		{environ{"LC_CTYPE=en_US.utf8", "TERM=screen", "COLORFGBG=0;15", "ACCESSIBLE=1"}, true, false, true, true},
		{environ{"COLORFGBG=15;default;0", "ACCESSIBLE=0"}, false, true, false, false},
	} {
		if c.env.utf8() != c.utf8 || c.env.dumb() != c.dumb || c.env.light() != c.light || c.env.accessible() != c.accessible {
			t.Errorf("%v: utf8 %v dumb %v light %v accessible %v", c.env, c.env.utf8(), c.env.dumb(), c.env.light(), c.env.accessible())
		}
	}
}
