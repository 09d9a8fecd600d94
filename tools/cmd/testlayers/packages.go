package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// pkg is one package of the module with what its test files declare.
type pkg struct {
	ImportPath string
	Rel        string // import path below the module's
	Tests      []string
	Fuzz       []string
	Concurrent bool // starts goroutines or guards state: worth the race detector
	layer      string
}

func (p pkg) hasTests() bool { return len(p.Tests) > 0 || len(p.Fuzz) > 0 }

// noSymbols links test binaries in two thirds of the time; nobody debugs them.
const noSymbols = "-ldflags=-s -w"

// A layer is a set of packages. A package belongs to the highest layer that one of its test
// files requires, so each runs once (and possibly again under race).
type layer struct {
	name string
	pick func(pkg) bool
	args []string
	env  []string
	rank int // among the layers to run, the lowest starts first
}

var layers = []layer{
	// go test's ten minutes are too short for a package whose tests share two CPUs with nodes.
	{name: "pure", rank: 4, pick: func(p pkg) bool { return p.layer == "pure" },
		args: []string{"-timeout=30m"}},
	{name: "adapter", rank: 3, pick: func(p pkg) bool { return p.layer == "adapter" },
		args: []string{"-timeout=30m"}},
	// One package at a time, as in cluster: nodes, and the guest whose CPU is emulated, need the
	// CPU that the other lane leaves.
	{name: "binary", rank: 0, pick: func(p pkg) bool { return p.layer == "binary" },
		args: []string{"-timeout=60m", "-p=1", "-parallel=2"}},
	{name: "cluster", rank: 1, pick: func(p pkg) bool { return p.layer == "cluster" }, // One cluster at a time: it fills a small machine.
		args: []string{"-timeout=40m", "-p=1"}},
	// The product's packages: their tests run those of the test bed under the detector too.
	{name: "race", rank: 2, pick: func(p pkg) bool {
		return p.layer != "binary" && p.layer != "cluster" && p.Concurrent && !strings.HasPrefix(p.Rel, "testenv/")
	},
		args: []string{"-timeout=30m", "-race", "-short"}, env: []string{"CGO_ENABLED=1"}},
}

func layerNames() []string {
	var names []string
	for _, l := range layers {
		names = append(names, l.name)
	}
	return names
}

func selectLayers(names []string) ([]layer, error) {
	var out []layer
	for _, n := range names {
		i := slices.IndexFunc(layers, func(l layer) bool { return l.name == n })
		if i < 0 {
			return nil, fmt.Errorf("unknown layer %q; layers are %s", n, strings.Join(layerNames(), ", "))
		}
		out = append(out, layers[i])
	}
	if len(out) == 0 {
		return nil, errors.New("no layer given; layers are " + strings.Join(layerNames(), ", "))
	}
	return out, nil
}

func (l layer) packages(all []pkg) []pkg {
	var out []pkg
	for _, p := range all {
		if p.hasTests() && l.pick(p) {
			out = append(out, p)
		}
	}
	return out
}

// layerOf applies the naming rules of docs/testing.md.
func layerOf(rel string, testFiles []string) string {
	if slices.ContainsFunc(testFiles, func(f string) bool { return gate(f) == "cluster" }) {
		return "cluster"
	}
	for _, dir := range []string{"testenv/node", "testenv/cmd"} {
		if rel == dir || strings.HasPrefix(rel, dir+"/") {
			return "binary"
		}
	}
	found := "pure"
	for _, f := range testFiles {
		switch gate(f) {
		case "binary":
			return "binary"
		case "adapter":
			found = "adapter"
		}
	}
	return found
}

// gate returns the layer that a test file's name requires, "" if none.
func gate(file string) string {
	switch {
	case strings.HasSuffix(file, "_cluster_test.go"):
		return "cluster"
	case strings.HasSuffix(file, "_binary_test.go"):
		return "binary"
	case strings.HasSuffix(file, "_kernel_test.go"), strings.HasSuffix(file, "_kubeapi_test.go"):
		return "adapter"
	}
	return ""
}

func listPackages(ctx context.Context, root string) ([]pkg, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-e", "-json=ImportPath,Dir,Module,GoFiles,TestGoFiles,XTestGoFiles", "./...")
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, stderr.String())
	}
	var pkgs []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var l struct {
			ImportPath, Dir                    string
			Module                             struct{ Path string }
			GoFiles, TestGoFiles, XTestGoFiles []string
		}
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("decode go list: %w", err)
		}
		p := pkg{ImportPath: l.ImportPath, Rel: strings.TrimPrefix(strings.TrimPrefix(l.ImportPath, l.Module.Path), "/")}
		tests := append(l.TestGoFiles, l.XTestGoFiles...)
		p.layer = layerOf(p.Rel, tests)
		for _, f := range tests {
			if err := p.readTests(filepath.Join(l.Dir, f)); err != nil {
				return nil, err
			}
		}
		for _, f := range l.GoFiles {
			conc, err := concurrent(filepath.Join(l.Dir, f))
			if err != nil {
				return nil, err
			}
			p.Concurrent = p.Concurrent || conc
		}
		pkgs = append(pkgs, p)
	}
	return pkgs, nil
}

func (p *pkg) readTests(path string) error {
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parse test file: %w", err)
	}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv != nil {
			continue
		}
		switch name := fn.Name.Name; {
		case isTest(name, "Test") && name != "TestMain":
			p.Tests = append(p.Tests, name)
		case isTest(name, "Fuzz"):
			p.Fuzz = append(p.Fuzz, name)
		}
	}
	return nil
}

// isTest is go test's own rule: the prefix, then no lower-case letter.
func isTest(name, prefix string) bool {
	rest, ok := strings.CutPrefix(name, prefix)
	return ok && (rest == "" || rest[0] < 'a' || rest[0] > 'z')
}

// unshared are the types and functions of package sync for caches and lazy values: using only
// them does not make the race detector worthwhile.
var unshared = []string{"Map", "Once", "OnceFunc", "OnceValue", "OnceValues", "Pool"}

// concurrent reports whether a file has a go statement or shares state between goroutines.
func concurrent(path string) (bool, error) {
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return false, fmt.Errorf("parse file: %w", err)
	}
	for _, imp := range f.Imports {
		switch p, _ := strconv.Unquote(imp.Path.Value); p {
		case "sync/atomic", "golang.org/x/sync/errgroup":
			return true, nil
		}
	}
	found := false
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "sync" && !slices.Contains(unshared, n.Sel.Name) {
				found = true
			}
		}
		return !found
	})
	return found, nil
}
