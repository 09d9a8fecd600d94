package app

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"cnictl/testenv/text/golden"
	"cnictl/tui/pages/pagetest"
)

func TestPlainPrintsScreens(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	b := newBench(t, pagetest.NewSource(20, 3), func(o *Options) { o.Out = &out })
	p := newPlain(b.o, utf8Locale, b.keys, b.fx)
	if err := p.screen(); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"filter type=m5.large", "sort node", "filter re:(", "yaml " + pagetest.NodeName(6), "back", "help", "keys", "nothing", "export csv"} {
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
	golden.File(t, "testdata/"+t.Name()+".golden", out.Bytes())
}

func TestPlainEndsWithItsInput(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	o := Options{Source: pagetest.NewSource(2, 1), Now: pagetest.Start, Environ: environ{"ACCESSIBLE=1"}, Out: &out, In: strings.NewReader("")}
	if err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "ip-10-0-0-4") {
		t.Errorf("it prints nothing:\n%s", out.String())
	}
}

func TestRunNeedsATerminal(t *testing.T) {
	t.Parallel()
	o := Options{Source: pagetest.NewSource(1, 1), Now: pagetest.Start, Environ: utf8Locale, Out: &bytes.Buffer{}, In: strings.NewReader("")}
	if err := Run(t.Context(), o); !errors.Is(err, ErrNoTerminal) {
		t.Errorf("%v", err)
	}
	o.Theme = "pink"
	if err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "pink") {
		t.Errorf("%v", err)
	}
	o.Theme, o.Keys = "", map[string][]string{"up": {"j"}, "down": {"j"}}
	if err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), `"j"`) {
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

// TestPlainStacksPanes: the text of a page with panes has them one after the other, none side by
// side, with no padding lines: it is read from top to bottom.
func TestPlainStacksPanes(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	b := newBench(t, pagetest.NewSource(20, 3), func(o *Options) { o.Out = &out })
	p := newPlain(b.o, utf8Locale, b.keys, b.fx)
	for _, line := range []string{"subnets", "trunks", "doctor", "open " + pagetest.NodeName(3)} {
		out.Reset()
		if _, err := p.line(line); err != nil {
			t.Fatal(line, err)
		}
		text := out.String()
		if i := strings.IndexAny(text, "│━┤█▓▒░╌▁▂▃▄▅▆▇"); i >= 0 {
			t.Errorf("%s: it draws what cannot be read out:\n%s", line, text)
		}
		if n := strings.Count(text, "\n"); n > 120 || strings.Contains(text, "\n\n\n") {
			t.Errorf("%s: %d lines, or blank ones:\n%s", line, n, text)
		}
	}
	for _, pane := range []string{"\nENIs", "\nWarm pool"} {
		if !strings.Contains(out.String(), pane) {
			t.Errorf("no %q in\n%s", pane, out.String())
		}
	}
}

// TestPlainPrintsErrorsLast: every failure of a command is reported at the end, where a screen
// reader stops, and the command does nothing else instead.
func TestPlainPrintsErrorsLast(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	b := newBench(t, pagetest.NewSource(20, 3), func(o *Options) { o.Out = &out })
	p := newPlain(b.o, utf8Locale, b.keys, b.fx)
	for _, c := range []struct{ line, says string }{
		{"filter bogus>>", "bogus"}, {"filter bogus>>", "bogus"}, {"sort colour", "colour"},
		{"open nobody", "no row named nobody"}, {"yaml nobody", "no row named nobody"},
	} {
		out.Reset()
		if _, err := p.line(c.line); err != nil {
			t.Fatal(c.line, err)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if last := lines[len(lines)-1]; !strings.Contains(last, c.says) || len(lines) < 5 {
			t.Errorf("%s: the last line is %q", c.line, last)
		}
	}
	if top := p.m.page().Name(); top != "overview" {
		t.Errorf("it went to %s", top)
	}
}

func TestScreensHaveANameATitleAndADigit(t *testing.T) {
	t.Parallel()
	for asked, name := range map[string]string{"overview": "overview", "nodes": "overview", "1": "overview", "2": "subnets", "subnets": "subnets", "5": "logs", "6": "pods", "pods": "pods", "enis": "enis", "7": "enis", "8": "whatif", "what-if": "whatif", "9": "", "node": "", "": ""} {
		if got := screenNamed(asked); got != name || HasScreen(asked) != (name != "") {
			t.Errorf("%q is %q", asked, got)
		}
	}
	var out bytes.Buffer
	b := newBench(t, pagetest.NewSource(3, 3), func(o *Options) { o.Out = &out })
	p := newPlain(b.o, utf8Locale, b.keys, b.fx)
	for _, c := range [][2]string{{"2", "subnets"}, {"nodes", "overview"}, {"trunks", "trunks"}, {"overview", "overview"}} {
		if _, err := p.line(c[0]); err != nil || p.m.page().Name() != c[1] {
			t.Errorf("%s leads to %s: %v", c[0], p.m.page().Name(), err)
		}
	}
	b.press("9")
	if !strings.Contains(b.toast.Text, "no screen 9") {
		t.Errorf("key 9 says %q", b.toast.Text)
	}
}
