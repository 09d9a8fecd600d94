package pages

import (
	"cnictl/doctor/causes/catalogue"
	"cnictl/tui/draw"
)

// Fix writes the first thing to do about a cause, nothing if none is known. The doctor has the others,
// as far as they apply.
func Fix(sheet *draw.Sheet, code string) {
	e, ok := catalogue.Lookup(code)
	if !ok || len(e.Fixes) == 0 {
		return
	}
	arrow := sheet.Style().Pick("→", ">")
	sheet.Item(draw.T(draw.Good, arrow), draw.T(draw.Good, "fix"), draw.T(draw.Text, "  "+e.Fixes[0].Text), draw.T(draw.Faint, "  D: doctor"))
}
