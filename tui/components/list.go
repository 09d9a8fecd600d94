package components

import (
	"time"
)

// List is a table as the app uses it. The filter line, the sort menu, marks and export
// are the same on every screen.
type List interface {
	// Do runs an action of the keymap. It returns false if it is not an action of lists.
	Do(action string, now time.Time) bool
	// Filter is the text in effect. Found counts the matching rows and all rows.
	Filter() string
	Found() (shown, all int)
	// SetFilter takes effect at once, with the cursor on the first matching row. On an
	// error, the last valid filter stays.
	SetFilter(text string) error
	// Order has the syntax of query.ParseOrder.
	Order() string
	SetOrder(text string) error
	// SortMenu are the letters of the sort menu.
	SortMenu() []SortKey
	// SortBy sorts by a column, or reverses the order if it is the current one.
	SortBy(column string)
	Faults() bool
	SetFaults(on bool)
	// Reset restores the initial order, without a filter.
	Reset()
	SetWide(on bool)
	// Window is the first and the last row on the screen, from 1.
	Window() (first, last int)
	// Frozen reports whether sorting waits for the user to stop moving.
	Frozen(now time.Time) bool
	// Next goes to the next row (+1) or the previous one (-1) that the current filter, or
	// else the last one, matches.
	Next(step int, now time.Time) bool
	// Cells are the marked rows, or else all rows shown, as a table.
	Cells() (header []string, rows [][]string)
	// Identities of the marked rows, or of the one under the cursor.
	Identities() []string
	Marked() int
	// Click selects the row at a cell of the list's area, or sorts by a header. It
	// reports whether a row was hit.
	Click(x, y int, now time.Time) (hit bool)
	Wheel(rows int, now time.Time)
}

// SortKey is a letter of the sort menu.
type SortKey struct{ Key, Column, Title string }
