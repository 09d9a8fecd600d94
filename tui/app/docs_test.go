package app

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"cnictl/daemon/fleet/document"
	"cnictl/doctor/causes"
	"cnictl/doctor/collect/watched"
	"cnictl/doctor/report"
	"cnictl/testenv/text/tour"
	"cnictl/tui/draw"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
	"cnictl/tui/tables"
)

const docs = "docs/tui.md"

// toured is the app at the end of the recording that docs/tui.md shows.
func toured(t *testing.T, width, height int, change func(*Options)) *bench {
	t.Helper()
	recording := tour.Open(t)
	b := newBench(t, pagetest.NewSource(0, 0), func(o *Options) {
		o.Source, o.Theme = recording, draw.Mono
		o.Examine = func(ctx context.Context, e pages.Examine) (document.DoctorReport, error) {
			ev, err := watched.Evidence(ctx, recording, e.Scope, e.Nodes, e.Progress, nil)
			if err != nil {
				return document.DoctorReport{}, err
			}
			r := causes.Diagnose(ev, causes.Options{})
			report.FillIn(&r)
			return r, nil
		}
		if change != nil {
			change(o)
		}
	})
	b.resize(width, height)
	b.send(changed{recording.View(), recording.Stats()})
	return b
}

// answer sends the pages the documents they request until they request no more.
func (b *bench) answer(t *testing.T) {
	t.Helper()
	b.View()
	b.clock = b.clock.Add(2 * time.Second) // so that the cursor has come to rest
	b.send(changed{b.o.Source.View(), b.o.Source.Stats()})
	b.run(b.page().Update(b.context(), pages.Second{Now: tour.End()}))
	for len(b.reads) > 0 {
		r := b.reads[0]
		b.reads = b.reads[1:]
		d := b.o.Source.Detail(t.Context(), r.Node, r.Want, r.Query)
		b.send(pages.Loaded{ID: r.ID, Want: r.Want, Detail: d})
	}
}

// goTo opens a screen and waits until it has what it requests.
func (b *bench) goTo(t *testing.T, o pages.Open) {
	t.Helper()
	b.send(o)
	b.answer(t)
}

func (b *bench) picture(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	for line := range strings.Lines(b.frame(t, colorprofile.NoTTY)) {
		out.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return out.String()
}

// TestDocs generates the frames of docs/tui.md and its table of keys.
func TestDocs(t *testing.T) {
	if testing.Short() {
		t.Skip("skip: -short: compares frames, and races with nothing")
	}
	pagesOf := tour.NewPages(t, docs)
	frame := func(name string, width, height int, change func(*Options), does func(*bench)) {
		t.Helper()
		b := toured(t, width, height, change)
		does(b)
		b.answer(t)
		b.answer(t) // what drawing made it request
		pagesOf.Code(docs, name, b.picture(t))
	}
	node := func(name string) func(*bench) {
		return func(b *bench) { b.goTo(t, pages.Open{Screen: "node", Node: name}) }
	}
	frame("overview", 120, 24, nil, func(*bench) {})
	frame("groups", 120, 16, nil, func(b *bench) { b.press("b") })
	frame("node", 120, 40, nil, node(tour.Starved))
	frame("over-warm", 120, 30, nil, node(tour.OverWarm))
	frame("original", 100, 24, nil, node(tour.Upstream))
	frame("eni", 100, 30, nil, func(b *bench) {
		node(tour.Trunk)(b)
		b.press("enter")
	})
	frame("pod", 100, 24, nil, func(b *bench) {
		node(tour.Trunk)(b)
		b.press("enter")
		b.answer(t)
		b.press("enter")
	})
	for _, screen := range []string{"pods", "enis", "trunks", "subnets", "doctor", "logs"} {
		frame(screen, 110, 24, nil, func(b *bench) { b.goTo(t, pages.Open{Screen: screen}) })
	}
	frame("whatif", 110, 30, nil, func(b *bench) {
		b.goTo(t, pages.Open{Screen: "whatif"})
		b.press("left", "down", "shift+right")
	})
	frame("finding", 110, 30, nil, func(b *bench) {
		b.goTo(t, pages.Open{Screen: "doctor", Node: tour.Starved})
		b.press("enter")
	})
	frame("help", 80, 24, nil, func(b *bench) { b.press("?") })
	frame("palette", 80, 20, nil, func(b *bench) { b.press(":"); b.typed("10-0-8") })
	frame("search", 100, 16, nil, func(b *bench) { b.press(":"); b.send(tea.PasteMsg{Content: " 10.0.10.5\n"}) })
	frame("filter", 100, 16, nil, func(b *bench) { b.press("/"); b.typed("zone=eu-west-1a free<5") })
	frame("sort", 100, 15, nil, func(b *bench) { b.press("s") })
	frame("object", 80, 20, nil, func(b *bench) { b.press("y") })
	frame("diagnostics", 90, 24, nil, func(b *bench) { b.press("ctrl+g") })
	frame("ascii", 80, 15, func(o *Options) { o.ASCII = true }, func(*bench) {})
	pagesOf.Set(docs, "keys", keysTable())
	pagesOf.Set(docs, "themes", themesTable())
	pagesOf.Set(docs, "columns", columnsTable())
	pagesOf.Code(docs, "plain", fmt.Sprintf(plainHelp, strings.Join(Screens(), ", ")))
	for _, name := range pagesOf.Unset(docs) {
		t.Errorf("%s: nothing is made for the section %q", docs, name)
	}
}

// keysTable is the table of the app's keys and of each screen's.
func keysTable() string {
	var out strings.Builder
	cell := func(s string) string { return "`" + strings.ReplaceAll(s, "|", "\\|") + "`" }
	out.WriteString("| key | does | word for settings |\n|---|---|---|\n")
	for _, s := range keymap.Table() {
		fmt.Fprintf(&out, "| **%s** | | |\n", s.Title)
		for _, b := range s.Bindings {
			fmt.Fprintf(&out, "| %s | %s | `%s` |\n", cell(b.Shown), b.Help, b.Action)
		}
	}
	out.WriteString("\nKeys of one screen:\n\n| screen | key | does | word for settings |\n|---|---|---|---|\n")
	for _, p := range keymap.PageTable() {
		title := strings.ToUpper(p.Page[:1]) + p.Page[1:] // the title of what is drawn above another screen
		if s, ok := screenOf(p.Page); ok {
			title = s.title
		}
		for _, b := range p.Bindings {
			fmt.Fprintf(&out, "| %s | %s | %s | `%s.%s` |\n", title, cell(b.Shown), b.Help, p.Page, b.Action)
		}
	}
	return out.String()
}

// columnsTable lists the columns that filters and orders of nodes can name.
func columnsTable() string {
	var out strings.Builder
	out.WriteString("| column | |\n|---|---|\n")
	for _, c := range tables.Nodes() {
		fmt.Fprintf(&out, "| `%s` | %s |\n", c.Name, c.Title)
	}
	return out.String()
}

func themesTable() string {
	var out strings.Builder
	for _, name := range draw.Themes() {
		fmt.Fprintf(&out, "- `%s`\n", name)
	}
	return out.String()
}
