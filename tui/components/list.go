package components

import (
	"time"

	"cnictl/tui/theme"
)

// List is a table as the app uses it: the filter line, the sort menu, marks and export
// are the same on every screen.
type List interface {
	// Do runs an action of the keymap; false: not an action of lists.
	Do(action string, now time.Time) bool
	// Filter is the text in effect, Found the matching rows and all rows.
	Filter() string
	Found() (shown, all int)
	// SetFilter takes effect at once, with the cursor on the first matching row; on an
	// error the last valid one stays.
	SetFilter(text string) error
	// Order has the syntax of query.ParseOrder.
	Order() string
	SetOrder(text string) error
	// SortMenu are the letters of the sort menu.
	SortMenu() []SortKey
	// SortBy orders by a column; by the one in effect: reversed.
	SortBy(column string)
	SetFaults(on bool)
	SetWide(on bool)
	// Window is the first and the last row on the screen, from 1.
	Window() (first, last int)
	// Frozen reports whether the order waits for the user to stop moving.
	Frozen(now time.Time) bool
	// Next goes to the next row (+1) or the one before (-1) that the filter, or the last
	// one, matches.
	Next(step int, now time.Time) bool
	// Cells are the rows shown, or those marked, as a table.
	Cells() (header []string, rows [][]string)
	// Identities of the marked rows, or of the one under the cursor.
	Identities() []string
	Marked() int
	// Click selects the row at a cell of the list's area, or sorts by a header. hit
	// reports whether there is a row.
	Click(x, y int, now time.Time) (hit bool)
	Wheel(rows int, now time.Time)
}

// SortKey is a letter of the sort menu.
type SortKey struct{ Key, Column, Title string }

// Cell is one cell of a map: a sign for each of the two alphabets, and its colour.
type Cell struct {
	Glyph, ASCII string
	Role         theme.Role
}
