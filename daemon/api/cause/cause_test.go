package cause_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/cause"
)

// root is the module's directory.
const root = "../../.."

// notProduced lists the codes that nothing produces, each with the reason. They stay because
// other versions may send them.
var notProduced = map[string]string{
	"DaemonStarting":    "the sockets open when the pool is ready: an ADD before that is daemon-unreachable",
	"NodeUnschedulable": "a cordoned node's pool follows no targets, but still grows for an ADD that waits",
	"NotSupported":      "every mode that there is is served",
}

// codes reads the declared constants: code by name.
func codes(t *testing.T) map[string]cause.Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "cause.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]cause.Code{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Names) != 1 || len(spec.Values) != 1 {
			return true
		}
		if typed, ok := spec.Type.(*ast.Ident); !ok || typed.Name != "Code" {
			return true
		}
		text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		out[spec.Names[0].Name] = cause.Code(text)
		return true
	})
	return out
}

// TestCodes: each code has a one-line title, and none is ever renamed or removed:
// testdata/codes.txt only grows.
func TestCodes(t *testing.T) {
	t.Parallel()
	var got []string
	seen := map[string]cause.Code{}
	for _, code := range slices.Sorted(maps.Values(codes(t))) {
		title := code.Title()
		if title == "" || strings.ContainsAny(title, "\n.") || seen[title] != "" {
			t.Errorf("%s: the title is %q, as that of %q", code, title, seen[title])
		}
		seen[title] = code
		got = append(got, string(code))
	}
	stable, err := os.ReadFile("testdata/codes.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Fields(string(stable)), got); diff != "" {
		t.Errorf("codes, sorted (-testdata/codes.txt +declared); add new ones there, never change old ones:\n%s", diff)
	}
	if title := cause.Code("no-such").Title(); title != "" {
		t.Errorf("an unknown code has the title %q", title)
	}
}

// TestCodes_AreProduced: every code that is compared with is also produced.
func TestCodes_AreProduced(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	// The simulation, the fleet view and the doctor only read codes.
	readers := []string{"daemon/fleet", "doctor", "testenv", "daemon/api/cause"}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		if d.IsDir() {
			if strings.HasPrefix(d.Name(), ".") && path != root || d.Name() == "testdata" || slices.Contains(readers, name) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), `"cnictl/daemon/api/cause"`) {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		produced(file, used)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	declared := codes(t)
	for name, code := range declared {
		reason, listed := notProduced[name]
		switch {
		case !used[name] && !listed:
			t.Errorf("nothing produces %s; produce it, or say why not in notProduced", code)
		case used[name] && listed:
			t.Errorf("%s is produced, although %s", code, reason)
		}
	}
	for name := range notProduced {
		if declared[name] == "" {
			t.Errorf("notProduced has %s, which is no code", name)
		}
	}
}

// produced records the codes that a file uses, except in comparisons and calls of Title.
func produced(n ast.Node, used map[string]bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CaseClause:
			for _, statement := range n.Body {
				produced(statement, used)
			}
			return false
		case *ast.BinaryExpr:
			return n.Op != token.EQL && n.Op != token.NEQ
		case *ast.SelectorExpr:
			if of, ok := n.X.(*ast.Ident); ok && of.Name == "cause" {
				used[n.Sel.Name] = true
			}
			return n.Sel.Name != "Title"
		}
		return true
	})
}
