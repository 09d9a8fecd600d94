// Package pages defines a screen: a page that takes messages, lays itself out in a given
// size and declares its keys. The screens are the packages below.
package pages

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/doctor/evidence"
	"cnictl/tui/components"
	"cnictl/tui/keymap"
	"cnictl/tui/theme"
)

// Context is what a page may use while it draws and updates. Each message has a new one;
// a page must not keep it.
type Context struct {
	Width, Height int // of the page
	View          *store.View
	Source        watch.Source
	Theme         *theme.Theme
	Now           time.Time // the source's: of what is shown
	Clock         time.Time // of the person at the terminal: of moves and orders
	ASCII         bool
	Linear        bool // as in components.Style; Height is not a limit then
	FaultsOnly    bool
	Recorded      bool // documents are read from a recording: they cost no request
	Examines      bool // there is a doctor to ask: see Examine
	Wide          bool
}

// Style is how the context has things drawn.
func (c Context) Style() components.Style {
	return components.Style{Theme: c.Theme, ASCII: c.ASCII, Linear: c.Linear}
}

// Page is one screen.
//
// Keys reach it as [Do]: the app finds the action of a key, in the page's own bindings
// first and then in its own. While the page is Busy it gets every tea.KeyPressMsg except
// ctrl+c, and [Paste].
type Page interface {
	// Name is the stable name, as `cnictl tui NAME` takes it.
	Name() string
	// Title is the breadcrumb.
	Title() string
	// Update takes one message. It never waits and never reads or writes anything itself.
	Update(Context, tea.Msg) tea.Cmd
	// Lines draws the page: exactly Height lines, none wider than Width.
	Lines(Context) []string
	// Keys are the page's own, in addition to the app's.
	Keys() []keymap.Binding
	// Busy reports whether the page takes typed text now: the app's letter keys are text.
	Busy() bool
	// Focus is what the page shows, for sampling.
	Focus(Context) watch.Focus
	// Row is the object under the cursor, for copying, exporting and YAML; nil: none.
	Row(Context) any
}

// Listed is a page that shows a table. The app works it: filter line, sort menu, order
// and filter kept in the state file, export, n and N, faults only, wide. nil while the
// pane with the focus has none.
type Listed interface {
	List() components.List
}

// Documented is a page with a document that cnictl prints with -o json: it is exported as
// JSON instead of the table's cells. nil: none at the moment.
type Documented interface {
	Document() any
}

// Gatherer is a page with too many rows to choose and order in Update: the app calls
// Gather after each message, and the command that it returns, if any, does the work in
// the background. Gather itself only compares.
type Gatherer interface {
	Gather(Context) tea.Cmd
}

// New makes a page. The app holds one for each screen, by Open.Screen.
type New func(Open) Page

// Messages between a page and the app.
type (
	// Do is an action of the keymap, the app's or one of the page's own bindings.
	Do struct{ Action string }
	// Mouse is a mouse event, in cells of the page.
	Mouse struct {
		X, Y   int
		Click  bool
		Double bool // a second click at the same place: open
		Wheel  int  // rows, down is positive
	}
	// Paste is text from the clipboard, while the page is Busy.
	Paste struct{ Text string }

	// Open shows a screen above this one.
	Open struct {
		Screen string // node, eni, pod, pods, enis, trunks, subnets, doctor, logs, whatif, overview
		Node   string
		ENI    string
		Pod    string // namespace/name
		IP     string
		Subnet string
		Nodes  string // of the doctor: names with commas between them; "" = all
		Filter string // of the table at first; of the doctor: of nodes, as their table has it
	}
	// Back leaves this screen.
	Back struct{}
	// Toast shows a line at the foot for some seconds.
	Toast struct {
		Text string
		Role theme.Role
	}
	// Read asks the app for documents of a node: it calls Source.Detail with a deadline
	// and gives the answer back as Loaded with the same ID and Want.
	Read struct {
		ID    uint64
		Node  string
		Want  watch.Want
		Query watch.Query
	}
	// Loaded carries documents of a node to the page that asked. ID is the page's own, so
	// that an answer for a page that is closed goes nowhere.
	Loaded struct {
		ID     uint64
		Want   watch.Want
		Detail watch.Detail
	}
	// Examine asks the app to run the doctor on nodes, one examination at a time. It is
	// cancelled when another is requested, or when the page leaves the stack. Progress is
	// called from any goroutine.
	Examine struct {
		To       Page
		ID       uint64
		Scope    evidence.Scope
		Nodes    []string
		Progress func(done, total int, what string)
	}
	// Examined carries the report to the page that asked, or why there is none.
	Examined struct {
		To     Page
		ID     uint64
		Report document.DoctorReport
		Err    error
	}
	// Above shows a page above this one. It has no place in the history.
	Above struct{ Page Page }
	// Gathered carries what a command of Gather has chosen to its page.
	Gathered struct {
		To   Page
		Rows any
	}
	// Changed reports that Context.View has changed.
	Changed struct{}
	// Second comes once a second while something on the screen shows time.
	Second struct{ Now time.Time }
)

// Go opens a screen.
func Go(o Open) tea.Cmd { return func() tea.Msg { return o } }
