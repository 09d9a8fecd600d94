package logline

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestSearched compares the constants with the list of lines that people search for: each
// line has a constant, and each constant occurs in a line.
func TestSearched(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/searched.txt")
	if err != nil {
		t.Fatal(err)
	}
	constants := textConstants(t)
	used := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		line = strings.TrimSpace(line)
		rest, found := line, false
		for text := range constants {
			if strings.Contains(rest, text) {
				used[text], found = true, true
			}
		}
		if !found {
			t.Errorf("no constant for %q", line)
		}
	}
	for text, name := range constants {
		if !used[text] {
			t.Errorf("%s is of no line: %q", name, text)
		}
	}
}

// textConstants returns the constants of searched.go: name by text.
func textConstants(t *testing.T) map[string]string {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), "searched.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	ast.Inspect(tree, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			all[text] = spec.Names[0].Name
		}
		return true
	})
	if len(all) < 39 {
		t.Fatalf("%d texts", len(all))
	}
	return all
}

// TestSearched_Recorded finds the texts in upstream's recorded lines.
func TestSearched_Recorded(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/ipamd.log")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(data)) {
		var in struct{ Msg string }
		if err := json.Unmarshal([]byte(line), &in); err != nil {
			t.Fatal(err)
		}
		all = append(all, in.Msg)
	}
	text := strings.Join(all, "\n") + "\n"
	for _, want := range []string{TextStarting, TextInitDone, TextServing, TextTargets, TextStats, TextPoolStats, TextAPIReached, TextNotDeletable} {
		if !strings.Contains("\n"+text, want) {
			t.Errorf("not in the recorded lines: %q", want)
		}
	}
}
