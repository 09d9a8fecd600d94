package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Markers between which docs/configuration.md is generated.
const (
	markdownStart = "<!-- generated from daemon/config/table.go: start -->"
	markdownEnd   = "<!-- generated from daemon/config/table.go: end -->"
)

// Markdown returns the generated part of docs/configuration.md: one table per group. Only
// groups with a deprecated variable have the column for it.
func Markdown() string {
	var b strings.Builder
	for i, r := range table() {
		deprecated := groupHas(r.Group, func(r Row) bool { return r.Deprecated != "" })
		if i == 0 || table()[i-1].Group != r.Group {
			fmt.Fprintf(&b, "\n### %s\n\n", r.Group)
			columns := []string{"variable", "kind", "default", "accepted", "read by", "since", "support", "meaning"}
			if deprecated {
				columns = append(columns, "deprecated")
			}
			line(&b, columns)
			line(&b, slices.Repeat([]string{"---"}, len(columns)))
		}
		line(&b, r.cells(deprecated))
	}
	return b.String() + "\n"
}

func groupHas(title string, what func(Row) bool) bool {
	return slices.ContainsFunc(table(), func(r Row) bool { return r.Group == title && what(r) })
}

func (r Row) cells(deprecated bool) []string {
	def := code(r.Default)
	if r.Manifest != "" {
		def += " (manifest: " + code(r.Manifest) + ")"
	}
	accepted := r.Accepts()
	if accepted == acceptsBool {
		accepted = "true, false" // the page explains the other spellings
	}
	meaning := r.Meaning
	if r.Label != "" {
		meaning += "; the Node's label " + code(r.Label) + " overrides it"
	}
	cells := []string{
		"`" + r.Name + "`", string(r.Kind()), def, accepted, cmp.Or(r.readers(), "nothing"),
		cmp.Or(r.Since, "–"), string(r.Support), meaning,
	}
	if deprecated {
		cells = append(cells, cmp.Or(r.Deprecated, "–"))
	}
	return cells
}

// line writes a row of a table; escaping keeps each cell in its column.
func line(b *strings.Builder, cells []string) {
	for _, c := range cells {
		b.WriteString("| " + strings.ReplaceAll(c, "|", `\|`) + " ")
	}
	b.WriteString("|\n")
}

func code(s string) string {
	switch {
	case s == "":
		return "–"
	case strings.HasPrefix(s, "("):
		return s
	}
	return "`" + s + "`"
}

// Splice inserts the generated part into a page between the markers.
func Splice(page string) (string, error) {
	before, rest, ok := strings.Cut(page, markdownStart+"\n")
	if !ok {
		return "", fmt.Errorf("find marker %q", markdownStart)
	}
	_, after, ok := strings.Cut(rest, markdownEnd)
	if !ok {
		return "", fmt.Errorf("find marker %q", markdownEnd)
	}
	return before + markdownStart + "\n" + Markdown() + markdownEnd + after, nil
}
