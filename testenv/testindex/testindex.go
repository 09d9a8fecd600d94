// Package testindex finds tests in the source by the names that documents use: a directory
// of the module, the function and, after a slash, its subtest or table row.
//
//	daemon/warmpool TestPlan_Limits
//	daemon/warmpool TestPlan_Limits/MAX_ENI
//
// This allows checking documents that name the tests of a promise.
package testindex

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Index reads the test files of a directory when one of its tests is first requested. It is
// not safe for concurrent use.
type Index struct {
	root string
	dirs map[string]map[string]*ast.FuncDecl
}

// New indexes the module with the given root.
func New(root string) *Index {
	return &Index{root: root, dirs: map[string]map[string]*ast.FuncDecl{}}
}

// Find returns an error that names the missing part if a test does not exist.
func (x *Index) Find(name string) error {
	dir, test, ok := strings.Cut(name, " ")
	if !ok || dir == "" || test == "" {
		return fmt.Errorf("%q is not a test: write a directory, a space and the name", name)
	}
	tests, err := x.tests(dir)
	if err != nil {
		return err
	}
	test, row, ofTable := strings.Cut(test, "/")
	f := tests[test]
	if f == nil {
		return fmt.Errorf("%s has no test %s", dir, test)
	}
	if ofTable && !hasSubtest(f, row) {
		return fmt.Errorf("%s %s has no subtest %q", dir, test, row)
	}
	return nil
}

func (x *Index) tests(dir string) (map[string]*ast.FuncDecl, error) {
	if out := x.dirs[dir]; out != nil {
		return out, nil
	}
	if !filepath.IsLocal(filepath.FromSlash(dir)) {
		return nil, errors.New(dir + " is not below the module's root")
	}
	files, err := filepath.Glob(filepath.Join(x.root, filepath.FromSlash(dir), "*_test.go"))
	if err != nil {
		return nil, err
	}
	out := map[string]*ast.FuncDecl{}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range f.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil && isTest(f) {
				out[f.Name.Name] = f
			}
		}
	}
	x.dirs[dir] = out
	return out, nil
}

func isTest(f *ast.FuncDecl) bool {
	return f.Recv == nil && f.Name.Name != "TestMain" && strings.HasPrefix(f.Name.Name, "Test")
}

// hasSubtest reports whether a test has a subtest: as a literal passed to Run, or as a row of
// a table. A table is a slice of rows whose first member, or whose member "name", is the name,
// or a map of rows by name. Other strings do not count: the values and messages of a row often
// contain the same words.
func hasSubtest(f *ast.FuncDecl, name string) (found bool) {
	is := func(e ast.Expr) bool {
		lit, ok := e.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return false
		}
		s, err := strconv.Unquote(lit.Value)
		return err == nil && s == name
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			run, ok := n.Fun.(*ast.SelectorExpr)
			found = found || ok && run.Sel.Name == "Run" && len(n.Args) == 2 && is(n.Args[0])
		case *ast.CompositeLit:
			found = found || slices.ContainsFunc(n.Elts, func(e ast.Expr) bool { return namesRow(n.Type, e, is) })
		}
		return !found
	})
	return found
}

// namesRow reports whether an element of a table is the row with the name.
func namesRow(table, element ast.Expr, is func(ast.Expr) bool) bool {
	switch table.(type) {
	case *ast.MapType:
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok || !is(pair.Key) {
			return false
		}
		_, text := pair.Value.(*ast.BasicLit) // pairs of text are an environment
		return !text
	case *ast.ArrayType:
		row, ok := element.(*ast.CompositeLit)
		if !ok || len(row.Elts) < 2 {
			return false
		}
		for i, e := range row.Elts {
			if pair, ok := e.(*ast.KeyValueExpr); ok {
				if key, ok := pair.Key.(*ast.Ident); ok && key.Name == "name" && is(pair.Value) {
					return true
				}
			} else if i == 0 && is(e) {
				return true
			}
		}
	}
	return false
}
