package config

import (
	"fmt"
	"strings"
)

// Markers between which docs/configuration.md is generated.
const (
	markdownStart = "<!-- generated from daemon/config/table.go: start -->"
	markdownEnd   = "<!-- generated from daemon/config/table.go: end -->"
)

// Markdown is the generated part of docs/configuration.md: one table per group of
// readers would repeat rows, so it is one table with a column for readers.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| variable | kind | default | accepted | read by | in effect here | meaning |\n|---|---|---|---|---|---|---|\n")
	for _, r := range table {
		def := code(r.Default)
		if r.Manifest != "" {
			def += " (manifest: " + code(r.Manifest) + ")"
		}
		meaning := r.Meaning
		if r.Deprecated != "" {
			meaning += ". **Deprecated**: " + r.Deprecated
		}
		switch r.Since {
		case "":
		case "ours":
			meaning += ". Not in the original"
		default:
			meaning += ". Since " + r.Since
		}
		readers := r.readers()
		if readers == "" {
			readers = "nobody"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s |\n",
			r.Name, r.Kind(), def, escape(r.Accepts()), readers, r.Support, escape(meaning))
	}
	return b.String()
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

// escape keeps a cell in its column.
func escape(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// Splice puts the generated part into a page between the markers.
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
