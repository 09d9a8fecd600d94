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
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	Concurrent bool            // starts goroutines or guards state: worth the race detector
	Parallel   int             // tests to run at once, from a directive; 0: none given
	Uses       []string        // what its tests use besides what they link and read, from a directive
	Guest      bool            // its tests may run in a virtual machine
	Tells      bool            // its TestMain tells the go command what its tests use
	Programs   bool            // its tests name the directory of built programs
	Imports    map[string]bool // packages of the module that its tests link, by import path below the module's
	layer      string
}

func (p pkg) hasTests() bool { return len(p.Tests) > 0 || len(p.Fuzz) > 0 }

// testArgs are for all tests. Without symbols, test binaries link in two thirds of the time, and
// nobody debugs them; golangci-lint vets the same files.
var testArgs = []string{"test", "-json", "-vet=off", "-ldflags=-s -w"}

// A lane is what runs one after the other, beside the other lane.
type lane int

const (
	// waits is for what waits on the real clock most of the time: nodes, clusters.
	waits lane = iota
	// computes is for all else. It runs at a lower priority, so that nodes get their CPU whatever
	// else runs, and the product's time limits of a second or two hold.
	computes
)

// niceness is the priority of the lane that computes.
const niceness = "15"

// A layer is a set of packages. A package belongs to the highest layer that one of its test
// files requires, so each runs once (and possibly again under race).
type layer struct {
	name string
	lane lane
	pick func(pkg) bool
	args []string
	env  []string
}

// layers are in the order in which their lanes run them.
var layers = []layer{
	// The limit is what ends a test that waits in vain, and no package comes near it, even on two
	// CPUs that it shares with nodes.
	{name: "pure", lane: computes, pick: func(p pkg) bool { return p.layer == "pure" },
		args: []string{"-timeout=20m"}},
	{name: "adapter", lane: computes, pick: func(p pkg) bool { return p.layer == "adapter" },
		args: []string{"-timeout=20m"}},
	// One package at a time, as in cluster: each has nodes of its own, or fills a small machine.
	{name: "binary", lane: waits, pick: func(p pkg) bool { return p.layer == "binary" },
		args: []string{"-timeout=60m", "-p=1"}},
	{name: "cluster", lane: waits, pick: func(p pkg) bool { return p.layer == "cluster" },
		args: []string{"-timeout=40m", "-p=1"}},
	// The product's packages: their tests run those of the test bed under the detector too.
	{name: "race", lane: computes, pick: func(p pkg) bool { return p.layer == "pure" && p.raced() },
		args: []string{"-timeout=30m", "-race", "-short"}, env: []string{"CGO_ENABLED=1"}},
	// Only at night: servers and the kernel, which the detector does not see, take most of the time.
	{name: "race-adapter", lane: computes, pick: func(p pkg) bool { return p.layer == "adapter" && p.raced() },
		args: []string{"-timeout=30m", "-race"}, env: []string{"CGO_ENABLED=1"}},
}

// nightly are the layers that are no part of the gate.
var nightly = []string{"race-adapter"}

// raceAtNight is the layer with the packages of the test bed, and with what takes long.
func raceAtNight(l layer) layer {
	l.pick = func(p pkg) bool { return p.layer == "pure" && p.Concurrent }
	l.args = slices.DeleteFunc(slices.Clone(l.args), func(arg string) bool { return arg == "-short" })
	return l
}

// raced reports whether a package is worth the race detector.
func (p pkg) raced() bool { return p.Concurrent && !strings.HasPrefix(p.Rel, "testenv/") }

// defaultParallel is how many tests of a package of the waiting lane run at once, unless the
// package says otherwise.
const defaultParallel = 2

// layerNames lists the layers of the gate, or those of the night too.
func layerNames(night bool) []string {
	var names []string
	for _, l := range layers {
		if night || !slices.Contains(nightly, l.name) {
			names = append(names, l.name)
		}
	}
	return names
}

func selectLayers(names []string, night bool) ([]layer, error) {
	var out []layer
	for _, n := range names {
		i := slices.IndexFunc(layers, func(l layer) bool { return l.name == n })
		if i < 0 {
			return nil, fmt.Errorf("unknown layer %q; layers are %s", n, strings.Join(layerNames(true), ", "))
		}
		l := layers[i]
		if night && l.name == "race" {
			l = raceAtNight(l)
		}
		out = append(out, l)
	}
	if len(out) == 0 {
		return nil, errors.New("no layer given; layers are " + strings.Join(layerNames(true), ", "))
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

// listed is what the go command says of a package.
type listed struct {
	ImportPath, Dir, Name, ForTest     string
	GoFiles, TestGoFiles, XTestGoFiles []string
	IgnoredGoFiles, SFiles, EmbedFiles []string
	Deps                               []string
}

// rel returns the import path below the module's, which may be "", and whether the package is in it.
func (l listed) rel(module string) (string, bool) {
	path, _, _ := strings.Cut(l.ImportPath, " [") // how the go command marks a package built for a test
	rel, ok := strings.CutPrefix(path, module)
	return strings.TrimPrefix(rel, "/"), ok && (rel == "" || rel[0] == '/')
}

// tree is the module under test.
type tree struct {
	pkgs     []pkg
	module   string            // its path
	packages map[string]listed // those of the module, by import path below the module's
}

// readTree reads the module in root with the go command, with or without the tests for the night.
func readTree(ctx context.Context, root string, night bool) (tree, error) {
	args := []string{"list", "-e", "-test", "-deps",
		"-json=ImportPath,Dir,Name,ForTest,GoFiles,TestGoFiles,XTestGoFiles,IgnoredGoFiles,SFiles,EmbedFiles,Deps"}
	if night {
		args = append(args, "-tags="+nightlyTag)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./...")...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return tree{}, fmt.Errorf("go list: %w: %s", err, stderr.String())
	}
	var all []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return tree{}, fmt.Errorf("decode go list: %w", err)
		}
		all = append(all, l)
	}
	t := tree{packages: map[string]listed{}}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return tree{}, fmt.Errorf("read module: %w", err)
	}
	if m := moduleLine.FindSubmatch(mod); m != nil {
		t.module = string(m[1])
	}
	linked := map[string]map[string]bool{} // by the test binary's import path
	for _, l := range all {
		rel, ours := l.rel(t.module)
		switch {
		case !ours:
		case strings.HasSuffix(l.ImportPath, ".test"):
			linked[strings.TrimSuffix(rel, ".test")] = t.below(l.Deps)
		case l.ForTest == "":
			t.packages[rel] = l
		}
	}
	for _, rel := range slices.Sorted(maps.Keys(t.packages)) {
		l := t.packages[rel]
		p := pkg{ImportPath: l.ImportPath, Rel: rel, Imports: linked[rel]}
		tests := append(l.TestGoFiles, l.XTestGoFiles...)
		p.layer = layerOf(p.Rel, tests)
		for _, f := range tests {
			if err := p.readTests(filepath.Join(l.Dir, f)); err != nil {
				return tree{}, err
			}
		}
		for _, f := range l.GoFiles {
			conc, err := concurrent(filepath.Join(l.Dir, f))
			if err != nil {
				return tree{}, err
			}
			p.Concurrent = p.Concurrent || conc
		}
		t.pkgs = append(t.pkgs, p)
	}
	return t, nil
}

var moduleLine = regexp.MustCompile(`(?m)^module (\S+)`)

// below returns the packages of the module among deps.
func (t tree) below(deps []string) map[string]bool {
	out := map[string]bool{}
	for _, d := range deps {
		if rel, ours := (listed{ImportPath: d}).rel(t.module); ours {
			out[rel] = true
		}
	}
	return out
}

// directive matches a comment line of a test file that says how to run its package:
//
//	//testlayers:parallel=8 uses=cmd/aws-cni,tools/helm
//
// where uses names what the tests use besides what they link and read themselves: commands of the
// module, which they start, and other directories.
var directive = regexp.MustCompile(`^// ?testlayers:(.*)`)

// direct reads a directive.
func (p *pkg) direct(text string) error {
	for _, word := range strings.Fields(text) {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "parallel":
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 {
				return fmt.Errorf("parallel=%s: want a number of tests", value)
			}
			p.Parallel = n
		case "uses":
			p.Uses = append(p.Uses, strings.Split(value, ",")...)
		default:
			return fmt.Errorf("unknown word %q; there are parallel= and uses=", word)
		}
	}
	return nil
}

func (p *pkg) readTests(path string) error {
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return fmt.Errorf("parse test file: %w", err)
	}
	for _, group := range f.Comments {
		for _, c := range group.List {
			if m := directive.FindStringSubmatch(c.Text); m != nil {
				if err := p.direct(m[1]); err != nil {
					return fmt.Errorf("read //testlayers in %s: %w", path, err)
				}
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		p.Programs = p.Programs || ok && lit.Value == `"CNI_TEST_BIN"`
		return true
	})
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv != nil {
			continue
		}
		if fn.Name.Name == "TestMain" {
			p.Guest, p.Tells = calls(fn, "MainOn"), calls(fn, "Main", "MainOn", "Run")
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

// calls reports whether a function names a function of another package, such as testenv.Main.
func calls(fn *ast.FuncDecl, names ...string) (found bool) {
	ast.Inspect(fn, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			sel, ok := call.Fun.(*ast.SelectorExpr)
			found = found || ok && slices.Contains(names, sel.Sel.Name) && len(call.Args) > 0 // not m.Run()
		}
		return !found
	})
	return found
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
