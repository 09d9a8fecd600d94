// Package pages holds what every screen is: a page that takes messages, lays itself out
// in the room it is given and tells its keys. The screens are the packages below.
package pages

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/fleet/store"
	"cnictl/tui/keymap"
	"cnictl/tui/source"
	"cnictl/tui/theme"
)

// Context is what a page may look at while it draws and updates. It is made anew for
// each message; a page keeps none.
type Context struct {
	Width, Height int // of the page's room
	View          *store.View
	Source        source.Source
	Theme         *theme.Theme
	Now           time.Time // the source's
	ASCII         bool
	FaultsOnly    bool
	Wide          bool
}

// Page is one screen.
type Page interface {
	// Name is the stable name, as `cnictl tui NAME` takes it.
	Name() string
	// Title is the breadcrumb.
	Title() string
	// Update takes one message. It never waits and never reads or writes anything itself.
	Update(Context, tea.Msg) tea.Cmd
	// Lines draws the page: exactly Height lines, none wider than Width.
	Lines(Context) []string
	// Keys are the page's own, beside those of the app.
	Keys() []keymap.Binding
	// Busy tells that the page takes typed text now: the app's letter keys are text.
	Busy() bool
	// Focus says what the page shows, for the sampling.
	Focus(Context) source.Focus
	// Row is the object under the cursor, for copying, exporting and YAML; nil: none.
	Row(Context) any
}

// Messages between a page and the app.
type (
	// Open shows a screen above this one.
	Open struct {
		Screen string // node, eni, pod, trunks, subnets, doctor, logs, overview
		Node   string
		ENI    string
		Pod    string // namespace/name
		IP     string
		Subnet string
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
		Want  source.Want
		Query source.Query
	}
	// Loaded carries documents of a node to the page that asked. ID is the page's own, so
	// that an answer for a page that is closed goes nowhere.
	Loaded struct {
		ID     uint64
		Want   source.Want
		Detail source.Detail
	}
	// Changed tells that Context.View is another.
	Changed struct{}
	// Second comes once a second while something on the screen shows time.
	Second struct{ Now time.Time }
)
