package pages

import (
	"cnictl/tui/components"
	"cnictl/tui/draw"
)

// Table draws a table of what the daemons report. Until one has answered, it shows why there
// is nothing, since an empty table would look as if all were well.
func Table[R any](c Context, s draw.Style, t *components.Table[R], width, height int) []string {
	if why := Unread(c.View); why != "" && len(t.Rows()) == 0 {
		sheet := draw.NewSheet(s, width)
		sheet.Add(draw.Span{Role: draw.Faint, Text: why})
		return draw.Exactly(sheet.Lines(), width, height)
	}
	return t.Lines(s, width, height)
}
