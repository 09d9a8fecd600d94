package app

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/components"
	"cnictl/tui/draw"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
)

// effects are the app's side effects, as commands that the program runs outside Update.
// Tests substitute their own.
type effects struct {
	read    func(pages.Read) tea.Cmd
	save    func(saved) tea.Cmd
	export  func(name string, data []byte) tea.Cmd
	connect func(context string) tea.Cmd
	memory  func() tea.Cmd
	examine func(pages.Examine) (tea.Cmd, context.CancelFunc)
	call    func(func(watch.Source))                   // calls the source in order, without blocking
	after   func(d time.Duration, msg tea.Msg) tea.Cmd // sends msg after d
}

// mode is what receives key presses.
type mode uint8

const (
	browsing mode = iota
	filtering
	sorting
	choosing  // the palette is open
	exporting // waiting for the letter of a format
)

// Model is the root model. Only Update changes it.
type Model struct {
	o    Options
	keys keymap.Map
	fx   effects

	now           time.Time
	width, height int
	term          draw.Terminal
	colours       string // the requested theme
	theme         *draw.Theme
	asked         time.Time // when the terminal was asked for its background
	opening       tea.Cmd   // the first screen's command

	view    *store.View
	src     *queuedSource
	focus   watch.Focus
	focused bool // a focus was sent

	away, paused, wide, mouse bool
	ascii, linear             bool
	interval                  time.Duration

	router  router
	mode    mode
	input   components.Input
	before  string // the filter before typing began
	problem string // with the typed text
	found   []choice
	picked  int
	search  search

	toast      pages.Toast
	toastUntil time.Time
	ticks      int // tick chains started; only the last continues
	ticking    bool
	click      struct {
		x, y int
		at   time.Time
	}

	contexts contexts
	exam     examination

	remembered *Remembered

	playback playback
	saved    saved
	drawn    frame
}

// frame is the last frame drawn, reused while nothing changes.
type frame struct {
	content string
	fresh   bool
}

// The app's own messages.
type (
	// changed carries a new view of the fleet.
	changed struct {
		view  *store.View
		stats watch.Stats
	}
	second   struct{ chain int }
	fade     struct{}
	exported struct {
		path string
		err  error
	}
	notSaved struct{ err error }
)

func newModel(o Options, env environ, keys keymap.Map, kept saved, fx effects) *Model {
	m := &Model{
		o: o, keys: keys, fx: fx, saved: kept,
		now:   o.Now(),
		ascii: o.ASCII || !env.utf8(),
		mouse: o.Mouse,
		wide:  kept.Wide,
		view:  o.Source.View(),
		src:   &queuedSource{o.Source, o.Source.Stats(), func(what func(watch.Source)) { fx.call(what) }},
	}
	if m.view == nil {
		m.view = &store.View{}
	}
	if m.remembered = o.Remembered; m.remembered == nil {
		m.remembered = &Remembered{}
	}
	m.colours = o.Theme
	if m.colours == "" {
		m.colours = kept.Theme
	}
	if draw.CheckTheme(m.colours) != nil || m.colours == "" {
		m.colours = draw.Auto
	}
	m.interval = o.Interval
	if m.interval == 0 {
		m.interval = m.src.stats.Interval
	}
	m.theme = draw.NewTheme(m.colours, m.term)
	first := o.Screen
	if first.Screen == "" {
		first.Screen = "overview"
	}
	if first.Screen != "overview" {
		m.open(pages.Open{Screen: "overview"})
	}
	m.opening = m.open(first)
	return m
}

// context returns what pages see.
func (m *Model) context() pages.Context {
	colours := m.theme
	if m.src.stats.Outage() {
		colours = colours.Faded()
	}
	_, recorded := m.recording()
	return pages.Context{
		Width: m.width, Height: m.body(),
		View: m.view, Source: m.src, Theme: colours,
		Now: m.o.Source.Now(), Clock: m.now,
		ASCII: m.ascii, Linear: m.linear, Wide: m.wide, Recorded: recorded, Examines: m.o.Examine != nil,
	}
}

func (m *Model) style() draw.Style {
	return draw.Style{Theme: m.theme, ASCII: m.ascii, Linear: m.linear}
}

// page returns the top screen.
func (m *Model) page() pages.Page { return m.router.top().page }

// list returns the table of the top screen, nil if it has none.
func (m *Model) list() components.List { return listOf(m.page()) }

func listOf(p pages.Page) components.List {
	if l, ok := p.(pages.Listed); ok {
		return l.List()
	}
	return nil
}

// say shows a line at the bottom for a few seconds, or until the next key or screen. The
// text may contain names from a node.
func (m *Model) say(role draw.Role, text string) tea.Cmd {
	const shown = 4 * time.Second
	m.toast = pages.Toast{Text: text, Role: role}
	m.toastUntil = m.now.Add(shown)
	return m.fx.after(shown, fade{})
}

// recolour rebuilds the theme.
func (m *Model) recolour() { m.theme = draw.NewTheme(m.colours, m.term) }
