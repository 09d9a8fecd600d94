package metrics

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocs_ListEveryMetric compares docs/metrics.md with what is served after every kind of
// event.
func TestDocs_ListEveryMetric(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	m := New(Options{Version: "v1", GoVersion: "go1"})
	exercise(m)
	scrape(t, m) // the handler counts a scrape when it ends
	served := families(t, strings.NewReader(scrape(t, m)))
	theirs, table := originals(t), true
	row := regexp.MustCompile("^\\| `(\\w+)` \\| (\\w+) \\| (.*?) \\| (.+) \\|$")
	documented := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "## Ours") {
			table = false
		}
		f := row.FindStringSubmatch(strings.TrimSpace(line))
		if f == nil {
			if strings.HasPrefix(line, "| `") {
				t.Errorf("not a row: %s", line)
			}
			continue
		}
		name, labels := f[1], strings.ReplaceAll(strings.ReplaceAll(strings.Trim(f[3], "–"), "`", ""), ", ", ",")
		documented[name] = true
		if s, ok := served[name]; !ok || strings.ToLower(s.Type) != f[2] || s.Labels != labels {
			t.Errorf("%s is documented as a %s by %q, served: %+v", name, f[2], labels, s)
		}
		if _, original := theirs[name]; original != table {
			t.Errorf("%s is in the wrong table", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(served)) {
		if !documented[name] {
			t.Errorf("not in docs/metrics.md: %s", name)
		}
	}
}

// notCounted are upstream's names that the daemon does not use, with the reason.
var notCounted = map[string]string{
	"FnIncreaseGetENIAddresses": "upstream reads a full ENI's addresses in a call of its own; ours counts that with the assign that found it full",
	"FnIncreaseGetENIPrefixes":  "the same for prefixes",
}

// TestNames_AreUsed: the daemon uses every name of something that can fail or run, or there
// is a reason why not.
func TestNames_AreUsed(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	used := map[string]bool{}
	walk := func(dir string, see func(n ast.Node)) {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			tree, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return fmt.Errorf("parse %s: %w", path, err)
			}
			ast.Inspect(tree, func(n ast.Node) bool { see(n); return true })
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	walk(".", func(n ast.Node) {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Fn") {
			names[spec.Names[0].Name] = true
		}
	})
	walk("../../ipamd", func(n ast.Node) {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "metrics" {
				used[s.Sel.Name] = true
			}
		}
	})
	if len(names) < 25 {
		t.Fatalf("%d names", len(names))
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		switch why := notCounted[name]; {
		case !used[name] && why == "":
			t.Errorf("%s is used nowhere", name)
		case used[name] && why != "":
			t.Errorf("%s is used, take it off the list (%s)", name, why)
		}
	}
}
