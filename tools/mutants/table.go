package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

var formats = []string{"text", "markdown", "json"}

// String is a line about a result.
func (r result) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s in %s: %s (%.0f s) %s", r.ID, r.Status, r.where(), r.What, r.Seconds, r.by()))
}

// by says which tests killed a mutant, or else why none did.
func (r result) by() string {
	var out []string
	for _, pkg := range slices.Sorted(maps.Keys(r.Killers)) {
		out = append(out, pkg+": "+strings.Join(r.Killers[pkg], ", "))
	}
	if r.Why != "" {
		out = append(out, strings.Join(strings.Fields(r.Why), " "))
	}
	return strings.Join(out, "; ")
}

// write prints the table.
func write(w io.Writer, results []result, format string) error {
	n := 0
	for _, r := range results {
		if r.Status == killed {
			n++
		}
	}
	total := fmt.Sprintf("%d of %d mutants killed", n, len(results))
	switch format {
	case "json":
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(results)
	case "markdown":
		fmt.Fprintln(w, "| id | in | change | | killed by |\n|---|---|---|---|---|")
		for _, r := range results {
			fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", r.ID, cell(r.where()), cell(r.What), r.Status, cell(r.by()))
		}
		_, err := fmt.Fprintf(w, "\n%s\n", total)
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range results {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", r.ID, r.Status, r.where(), r.by())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, total)
	return err
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
