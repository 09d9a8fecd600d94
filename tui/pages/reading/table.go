package reading

import (
	"cnictl/tui/components"
	"cnictl/tui/components/prose"
	"cnictl/tui/pages"
	"cnictl/tui/theme"
)

// Table draws a table of what the daemons report. Until one has answered, it shows why there
// is nothing, since an empty table would look as if all were well.
func Table[R any](c pages.Context, s components.Style, t *components.Table[R], width, height int) []string {
	if why := Unread(c.View); why != "" && len(t.Rows()) == 0 {
		sheet := prose.NewSheet(s, width)
		sheet.Add(prose.Span{Role: theme.Faint, Text: why})
		return components.Exactly(sheet.Lines(), width, height)
	}
	return t.Lines(s, width, height)
}
