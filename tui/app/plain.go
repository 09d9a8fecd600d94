package app

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/draw"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/show"
)

const (
	plainWidth  = 120
	plainHeight = 2000             // most rows of a table
	plainEvery  = 10 * time.Second // at least, between two reports of a change
	plainInput  = 1024             // most bytes per line
)

// plain is the app for screen readers and dumb terminals. It prints the same screens as
// text on request, and a line when the totals change. It never overwrites anything.
type plain struct {
	m       *Model
	out     io.Writer
	sums    string    // as last printed
	printed time.Time // when sums was printed
}

// runPlain reads commands until the input ends.
func runPlain(ctx context.Context, o Options, env environ, keys keymap.Map) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	fx := effectsOf(ctx, o, &keeper{path: o.State}, func(what func(watch.Source)) { what(o.Source) })
	fx.after = func(time.Duration, tea.Msg) tea.Cmd { return nil } // printed text never expires
	p := newPlain(o, env, keys, fx)
	lines := make(chan string)
	go readLines(ctx, o.In, lines) // ends with the input or, if a read blocks, with the process
	every := time.NewTicker(time.Second)
	defer every.Stop()
	if err := p.screen(); err != nil {
		return err
	}
	for {
		var err error
		done := false
		select {
		case <-ctx.Done():
			return nil
		case <-o.Source.Changed():
			p.take(changed{o.Source.View(), o.Source.Stats()})
		case <-every.C:
			err = p.report()
		case line, open := <-lines:
			if !open {
				return nil
			}
			done, err = p.line(line)
		}
		if done || err != nil {
			return err
		}
	}
}

func readLines(ctx context.Context, in io.Reader, out chan<- string) {
	defer close(out)
	scanner := bufio.NewScanner(in)
	scanner.Buffer(make([]byte, plainInput), plainInput)
	for scanner.Scan() {
		select {
		case out <- scanner.Text():
		case <-ctx.Done():
			return
		}
	}
}

func newPlain(o Options, env environ, keys keymap.Map, fx effects) *plain {
	m := newModel(o, env, keys, load(o.State), fx)
	m.term, m.theme, m.linear = draw.Terminal{}, draw.PlainTheme(), true
	m.width, m.height = plainWidth, plainHeight
	m.updateFocus()
	return &plain{m: m, out: o.Out}
}

// take passes a message to the model and runs the resulting commands at once.
func (p *plain) take(msg tea.Msg) {
	for queue := []tea.Msg{msg}; len(queue) > 0; queue = queue[1:] {
		switch next := queue[0].(type) {
		case nil:
		case tea.BatchMsg:
			for _, cmd := range next {
				queue = append(queue, run(cmd))
			}
		case pages.Toast:
			p.say(next.Text)
		case exported:
			if next.err != nil {
				p.say("not exported: " + show.Safe(next.err.Error()))
			} else {
				p.say("written to " + show.Safe(next.path))
			}
		default:
			p.m.now = p.m.o.Now()
			queue = append(queue, run(p.m.take(next)))
			p.m.updateFocus()
			queue = append(queue, run(p.m.gather()))
		}
	}
}

func (p *plain) say(text string) { fmt.Fprintln(p.out, show.Printable(text)) }

// report prints the totals if they changed, at most once per plainEvery.
func (p *plain) report() error {
	sums := p.header()
	if sums == p.sums || p.m.now.Sub(p.printed) < plainEvery && !p.printed.IsZero() {
		p.m.now = p.m.o.Now()
		return nil
	}
	p.sums, p.printed = sums, p.m.now
	_, err := fmt.Fprintln(p.out, sums)
	return err
}

// header returns the screens' header without the clock, which would always differ.
func (p *plain) header() string {
	t := p.m.view.Totals
	least := ""
	if !t.Complete && t.Nodes > 0 {
		least = "at least "
	}
	cooling := show.Unknown
	switch c := t.Cooling; {
	case c.Known && c.Bound && t.Complete:
		cooling = "at least " + show.Count(c.N)
	case c.Known:
		cooling = show.Count(c.N)
	}
	return fmt.Sprintf("%s: %s, %d live, %d partial, %d down, %d pending; %s%s held, %d used, %s cooling, %d free; %s, %s",
		show.Safe(p.m.o.Source.Title()), human.Plural(t.Nodes, "node", "nodes"), t.Live, t.Partial, t.Down, t.Unasked,
		least, human.Plural(t.Held, "address", "addresses"), t.Assigned, cooling, t.Free,
		human.Plural(t.Errors, "error", "errors"), human.Plural(t.Warnings, "warning", "warnings"))
}

// screen prints the header and the top screen.
func (p *plain) screen() error {
	p.sums, p.printed = p.header(), p.m.now
	var titles []string
	for _, e := range p.m.router.stack {
		titles = append(titles, show.Safe(e.page.Title()))
	}
	var b strings.Builder
	b.WriteString(p.sums + "\n" + strings.Join(titles, " > ") + "\n\n")
	lines := p.m.page().Lines(p.m.context())
	for len(lines) > 0 && strings.TrimSpace(ansi.Strip(lines[len(lines)-1])) == "" {
		lines = lines[:len(lines)-1]
	}
	for _, line := range lines {
		b.WriteString(strings.TrimRight(show.Printable(ansi.Strip(line)), " ") + "\n")
	}
	if l := p.m.list(); l != nil {
		shown, all := l.Found()
		fmt.Fprintf(&b, "\n%d of %d rows, sort: %s, filter: %s\n", shown, all, orDash(l.Order()), orDash(l.Filter()))
	}
	b.WriteString("enter prints the screen again; help lists the commands\n")
	_, err := io.WriteString(p.out, b.String())
	return err
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

const plainHelp = `Commands:
  (empty)           print the screen again
  SCREEN            go to a screen: %s
  open NAME         open a row of the table, or a node
  pod [NS/]NAME     go to a pod
  ip ADDRESS        find what has an address
  back              leave this screen
  filter TEXT       show some rows; filter alone shows all
  sort -ip,node     order the rows
  yaml NAME         the row as YAML
  wide, faults      more columns, rows with faults only
  pause, refresh    stop reading, read now
  interval 10s      between two samples
  export csv        or json, or text, into a new file
  keys              the keys of the full screen
  quit
`

// line carries out one command.
func (p *plain) line(line string) (done bool, err error) {
	p.m.now = p.m.o.Now()
	word, argument, _ := strings.Cut(strings.TrimSpace(line), " ")
	argument = strings.TrimSpace(argument)
	var cmd tea.Cmd
	switch word {
	case "":
	case "quit", "exit", "q":
		p.take(run(p.m.keep()))
		return true, nil
	case "help", "?":
		_, err = fmt.Fprintf(p.out, plainHelp, strings.Join(Screens(), ", "))
		return false, err
	case "keys":
		c := p.m.context()
		c.Width = 26
		page := newHelp(p.m.shownKeys(), p.m.page(), digitTitles())
		for _, l := range page.Lines(c) {
			if l = strings.TrimRight(l, " "); l != "" {
				p.say(l)
			}
		}
		return false, nil
	case "back":
		cmd, _ = p.m.back()
	case "open":
		cmd = p.open(argument)
	case "yaml":
		if cmd = p.m.say(draw.Warn, noRow(argument)); p.selectRow(argument) {
			p.m.toast = pages.Toast{}
			cmd = p.m.object()
		}
	case "wide":
		cmd = p.m.do(keymap.Wide, "")
	case "faults":
		cmd = p.m.do(keymap.Faults, "")
	case "pause":
		cmd = p.m.pause()
	case "refresh":
		cmd = p.m.do(keymap.Refresh, "")
	default:
		switch i := slices.IndexFunc(commands, func(c command) bool { return c.name == word }); {
		case i >= 0:
			cmd = commands[i].run(p.m, argument)
		case screenNamed(word) != "":
			cmd = p.m.jump(screenNamed(word))
		default:
			p.say("unknown command " + show.Safe(word) + "; help lists them")
			return false, nil
		}
	}
	p.take(run(cmd))
	if err := p.screen(); err != nil {
		return false, err
	}
	if p.m.toast.Text != "" { // last, where a line-by-line reader ends up
		p.say(p.m.toast.Text)
	}
	p.m.toast = pages.Toast{}
	return false, nil
}

func run(cmd tea.Cmd) tea.Msg {
	if cmd == nil {
		return nil
	}
	return cmd()
}

// open opens the row with a name or, if none has it, the node.
func (p *plain) open(name string) tea.Cmd {
	if p.selectRow(name) {
		return p.m.page().Update(p.m.context(), pages.Do{Action: keymap.In})
	}
	for _, n := range p.m.view.Nodes {
		if full := n.Metadata.Name; full == name || strings.HasPrefix(full, name+".") {
			return p.m.open(pages.Open{Screen: "node", Node: full})
		}
	}
	return p.m.say(draw.Warn, noRow(name))
}

// selectRow moves the cursor to the named row; without a name, the cursor stays. The
// domain shared by all nodes may be left out, as it is in the table.
func (p *plain) selectRow(name string) bool {
	if name == "" {
		return true
	}
	t, ok := p.m.list().(interface{ Select(string) bool })
	if !ok {
		return false
	}
	if t.Select(name) {
		return true
	}
	return slices.ContainsFunc(p.m.view.Nodes, func(n *store.Node) bool {
		return strings.HasPrefix(n.Metadata.Name, name+".") && t.Select(n.Metadata.Name)
	})
}

func noRow(name string) string { return "no row named " + name }
