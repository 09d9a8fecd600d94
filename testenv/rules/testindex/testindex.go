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
	dirs map[string]*directory
}

// directory is what the test files of a directory declare.
type directory struct {
	tests   map[string]*ast.FuncDecl
	tables  map[string][]ast.Node // what the variables of the package are made of
	nightly map[string]bool       // tests that a build with the tag nightly has, and no other
}

// New indexes the module with the given root.
func New(root string) *Index {
	return &Index{root: root, dirs: map[string]*directory{}}
}

// Find returns an error that names the missing part if a test does not exist.
func (x *Index) Find(name string) error {
	_, err := x.find(name)
	return err
}

// InGate is Find for tests that run for every commit: one that only the nightly run has is an
// error. It does not look at the table that a row is from.
func (x *Index) InGate(name string) error {
	nightly, err := x.find(name)
	if err == nil && nightly {
		err = fmt.Errorf("%s only runs nightly", name)
	}
	return err
}

func (x *Index) find(name string) (nightly bool, err error) {
	dir, test, ok := strings.Cut(name, " ")
	if !ok || dir == "" || test == "" {
		return false, fmt.Errorf("%q is not a test: write a directory, a space and the name", name)
	}
	d, err := x.directory(dir)
	if err != nil {
		return false, err
	}
	test, row, ofTable := strings.Cut(test, "/")
	f := d.tests[test]
	if f == nil {
		return false, fmt.Errorf("%s has no test %s", dir, test)
	}
	if ofTable && !d.hasSubtest(f, row) {
		return false, fmt.Errorf("%s %s has no subtest %q", dir, test, row)
	}
	return d.nightly[test], nil
}

func (x *Index) directory(dir string) (*directory, error) {
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
	out := &directory{tests: map[string]*ast.FuncDecl{}, tables: map[string][]ast.Node{}, nightly: map[string]bool{}}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return nil, err
		}
		out.read(f)
	}
	x.dirs[dir] = out
	return out, nil
}

func (d *directory) read(f *ast.File) {
	nightly := slices.ContainsFunc(f.Comments, func(g *ast.CommentGroup) bool { return g.List[0].Text == "//go:build nightly" })
	for _, decl := range f.Decls {
		switch decl := decl.(type) {
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok && len(v.Values) == len(v.Names) {
					for i, name := range v.Names {
						d.tables[name.Name] = append(d.tables[name.Name], v.Values[i])
					}
				}
			}
		case *ast.FuncDecl:
			switch {
			case decl.Body == nil:
			case isTest(decl):
				d.tests[decl.Name.Name], d.nightly[decl.Name.Name] = decl, nightly
			case decl.Recv == nil && decl.Name.Name == "init":
				d.readInit(decl)
			}
		}
	}
}

// readInit reads what an init function adds to tables: x = append(x, …), x["row"] = … and
// maps.Copy(x, …).
func (d *directory) readInit(f *ast.FuncDecl) {
	for _, statement := range f.Body.List {
		var to ast.Expr
		var added ast.Node = statement
		switch s := statement.(type) {
		case *ast.AssignStmt:
			to = s.Lhs[0]
			if row, ok := to.(*ast.IndexExpr); ok {
				to = row.X
				likeMap := &ast.MapType{Key: row.X, Value: row.X}
				added = &ast.CompositeLit{Type: likeMap, Elts: []ast.Expr{&ast.KeyValueExpr{Key: row.Index, Value: s.Rhs[0]}}}
			}
		case *ast.ExprStmt:
			if call, ok := s.X.(*ast.CallExpr); ok && len(call.Args) > 0 {
				to = call.Args[0]
			}
		}
		if table, ok := to.(*ast.Ident); ok {
			d.tables[table.Name] = append(d.tables[table.Name], added)
		}
	}
}

func isTest(f *ast.FuncDecl) bool {
	return f.Recv == nil && f.Name.Name != "TestMain" && strings.HasPrefix(f.Name.Name, "Test")
}

// hasSubtest reports whether a test has a subtest: as a literal passed to Run, or as a row of
// a table, in the test or in a variable of the package that it uses. A table is a slice of rows whose first member, or whose member "name", is the name,
// or a map of rows by name. Other strings do not count: the values and messages of a row often
// contain the same words.
func (d *directory) hasSubtest(f *ast.FuncDecl, name string) bool {
	if names(f.Body, name) {
		return true
	}
	found := false
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if variable, ok := n.(*ast.Ident); ok {
			found = found || slices.ContainsFunc(d.tables[variable.Name], func(table ast.Node) bool { return names(table, name) })
		}
		return !found
	})
	return found
}

// names reports whether code names a subtest.
func names(code ast.Node, name string) (found bool) {
	is := func(e ast.Expr) bool {
		lit, ok := e.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return false
		}
		s, err := strconv.Unquote(lit.Value)
		return err == nil && s == name
	}
	ast.Inspect(code, func(n ast.Node) bool {
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
