package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// change is a file of the tree with a mutant in it.
type change struct {
	path string // below the root
	text []byte
}

// apply finds the code of a mutant and changes a copy. The code must be there exactly once.
func (m mutant) apply(root string) (change, error) {
	places := []span{{path: m.Place}}
	if m.Name != "" {
		var err error
		if places, err = find(filepath.Join(root, m.Place), m.Name); err != nil {
			return change{}, err
		}
		if len(places) == 0 {
			return change{}, fmt.Errorf("%s has no %s", m.Place, m.Name)
		}
	}
	var out change
	found := 0
	old := flexible(m.Old)
	for _, p := range places {
		if m.Name != "" {
			p.path = filepath.Join(m.Place, p.path)
		}
		text, err := os.ReadFile(filepath.Join(root, p.path))
		if err != nil {
			return change{}, err
		}
		if m.Name == "" {
			p.to = len(text)
		}
		for _, at := range old.FindAllIndex(text[p.from:p.to], -1) {
			found++
			out = change{p.path, []byte(string(text[:p.from+at[0]]) + m.New + string(text[p.from+at[1]:]))}
		}
	}
	if found != 1 {
		return change{}, fmt.Errorf("%s has %q %d times, not once", m.where(), m.Old, found)
	}
	return out, nil
}

// flexible matches a text with any white space where it has some.
func flexible(text string) *regexp.Regexp {
	words := strings.Fields(text)
	for i := range words {
		words[i] = regexp.QuoteMeta(words[i])
	}
	return regexp.MustCompile(strings.Join(words, `\s+`))
}

// span is a part of a file.
type span struct {
	path     string
	from, to int
}

// find returns where a package declares a name: "function", "Type.Method", or a variable,
// constant or type. With build constraints there are only the files for this machine.
func find(dir, name string) ([]span, error) {
	fset := token.NewFileSet()
	files, err := parseDir(fset, dir)
	if err != nil {
		return nil, err
	}
	var out []span
	for _, f := range files {
		add := func(n ast.Node) {
			from, to := fset.Position(n.Pos()), fset.Position(n.End())
			out = append(out, span{filepath.Base(from.Filename), from.Offset, to.Offset})
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if nameOf(d) == name {
					add(d)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if declares(s, name) {
						add(s)
					}
				}
			}
		}
	}
	return out, nil
}

func parseDir(fset *token.FileSet, dir string) ([]*ast.File, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []*ast.File
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		if ok, err := build.Default.MatchFile(dir, e.Name()); err != nil || !ok {
			continue
		}
		f, err := parser.ParseFile(fset, filepath.Join(dir, e.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

func nameOf(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
			continue
		case *ast.IndexExpr:
			t = x.X
			continue
		case *ast.IndexListExpr:
			t = x.X
			continue
		case *ast.Ident:
			return x.Name + "." + d.Name.Name
		}
		return d.Name.Name
	}
}

func declares(s ast.Spec, name string) bool {
	switch s := s.(type) {
	case *ast.TypeSpec:
		return s.Name.Name == name
	case *ast.ValueSpec:
		for _, n := range s.Names {
			if n.Name == name {
				return true
			}
		}
	}
	return false
}
