// Package pages defines a screen: a page that handles messages, lays itself out in a given
// size and declares its keys. It also holds what screens read from a node: documents that are
// refreshed while they are shown, their age, and the words for what could not be read. It requests
// them through messages and never blocks. The screens are in the packages below.
package pages

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/doctor/evidence"
	"cnictl/tui/components"
	"cnictl/tui/draw"
	"cnictl/tui/show"
)

// Context is what a page may use to draw and update. Each message comes with a new one; a
// page must not keep it.
type Context struct {
	Width, Height int // of the page
	View          *store.View
	Source        watch.Source
	Theme         *draw.Theme
	Now           time.Time // the source's time, for what is shown
	Clock         time.Time // the user's time, for cursor moves and sorting
	ASCII         bool
	Linear        bool // as in draw.Style; Height is then no limit
	Recorded      bool // documents come from a recording and cost no request
	Examines      bool // a doctor is available; see Examine
	Wide          bool
}

// Style returns the style to draw with.
func (c Context) Style() draw.Style {
	return draw.Style{Theme: c.Theme, ASCII: c.ASCII, Linear: c.Linear}
}

// Page is one screen.
//
// Keys reach it as [Do]: the app looks up the action of a key among those of the page (keymap.Page of
// its name) first, then in the app's.
type Page interface {
	// Name is the stable name, as `cnictl tui NAME` accepts it.
	Name() string
	// Title is the breadcrumb.
	Title() string
	// Update handles one message. It never blocks and does no I/O.
	Update(Context, tea.Msg) tea.Cmd
	// Lines draws the page: exactly Height lines, none wider than Width.
	Lines(Context) []string
	// Focus is what the page shows, for sampling.
	Focus(Context) watch.Focus
	// Row is the object under the cursor, for copying, exporting and YAML; nil if none.
	Row(Context) any
}

// Listed is a page that shows a table. The app operates the table: filter line, sort menu,
// order kept in the state file, export, n and N, faults only, wide. List returns nil while
// the focused pane has no table.
type Listed interface {
	List() components.List
}

// Documented is a page with a document that cnictl prints with -o json. A JSON export
// contains it instead of the table's cells. Document returns nil if there is none yet.
type Documented interface {
	Document() any
}

// Leaver is a page with levels of its own. Leave goes one up, or returns false: then the key leaves
// the page.
type Leaver interface {
	Leave(Context) bool
}

// Gatherer is a page with too many rows to select and sort in Update. The app calls Gather
// after each message; the command it returns, if any, does the work in the background.
// Gather itself only compares.
type Gatherer interface {
	Gather(Context) tea.Cmd
}

// New makes a page. The app has one New for each Open.Screen.
type New func(Open) Page

// Messages between a page and the app.
type (
	// Do is an action from the app's keymap or the page's bindings.
	Do struct{ Action string }
	// Mouse is a mouse event, in cells of the page.
	Mouse = components.Mouse

	// Open shows a screen above this one.
	Open struct {
		Screen string // node, eni, pod, pods, enis, trunks, subnets, doctor, logs, whatif, overview
		Node   string
		ENI    string
		Pod    string // namespace/name
		IP     string
		Subnet string
		Nodes  string // for the doctor: comma-separated names; "" = all
		Filter string // the table's first filter; for the doctor: of nodes, as in their table
	}
	// Back leaves this screen.
	Back struct{}
	// Toast shows a line at the bottom for a few seconds.
	Toast struct {
		Text string
		Role draw.Role
	}
	// Read asks the app for documents of a node. The app calls Source.Detail with a
	// deadline and returns the result as Loaded, with the same ID and Want.
	Read struct {
		ID    uint64
		Node  string
		Want  watch.Want
		Query watch.Query
	}
	// Loaded carries documents of a node to the page that asked. ID identifies that page,
	// so an answer for a closed page is ignored.
	Loaded struct {
		ID     uint64
		Want   watch.Want
		Detail watch.Detail
	}
	// Examine asks the app to run the doctor on nodes, one examination at a time. It is cancelled
	// when another is requested, or when the page can no longer be shown. Progress and SoFar are
	// called from any goroutine: with what is being read, how much of total is done, which is 0 until
	// known, and with what the doctor would say of what was read so far.
	Examine struct {
		To       Page
		ID       uint64
		Scope    evidence.Scope
		Nodes    []string
		Progress func(done, total int, what string)
		SoFar    func(document.DoctorReport)
	}
	// Examined carries the report, or the error, to the page that asked.
	Examined struct {
		To     Page
		ID     uint64
		Report document.DoctorReport
		Err    error
	}
	// Above shows a page above this one, outside the history.
	Above struct{ Page Page }
	// Gathered carries the rows that a Gather command selected to its page.
	Gathered struct {
		To   Page
		Rows any
	}
	// Changed reports that Context.View has changed.
	Changed struct{}
	// Second arrives once a second, unless the screen is still.
	Second struct{ Now time.Time }
)

// Go opens a screen.
func Go(o Open) tea.Cmd { return func() tea.Msg { return o } }

// Copy puts lines on the terminal's clipboard. Names and commands come from nodes, and a line
// break or an escape sequence in one would run it in the shell where it is pasted.
func Copy(lines ...string) tea.Cmd {
	printable := make([]string, len(lines))
	for i, line := range lines {
		printable[i] = show.Printable(line)
	}
	return tea.SetClipboard(strings.Join(printable, "\n"))
}
