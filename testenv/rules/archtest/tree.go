package archtest

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
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const module = "cnictl"

// Package is one package as the rules see it.
type Package struct {
	Path    string // below the module's root
	Name    string
	Imports []string // full paths; of the package without its tests
	// TestImports are the imports of its test files, internal and external.
	TestImports []string
	Files       []File   // test files included
	Ignored     []string // names of files that a default build leaves out
	Other       []File   // the same, parsed
}

// File is one parsed source file.
type File struct {
	Name string // below the module's root
	Test bool
	AST  *ast.File
	Set  *token.FileSet
}

// Tree is the module.
type Tree struct {
	Packages []Package
	Root     []string // names in the root directory
	Docs     []Doc
	Notes    []Doc           // comments of other texts: manifests, scripts, lists
	Names    map[string]bool // files and directories below the root, except what the build creates
}

// Binary is what one main package links.
type Binary struct {
	Package string // below the module's root
	Deps    []string
	Bytes   int64 // size of the release build; 0 = not built
}

// Violation is one broken rule.
type Violation struct {
	Where string
	Rule  string
}

func (v Violation) String() string { return v.Where + ": " + v.Rule }

// Load reads the module in dir.
func Load(ctx context.Context, dir string) (Tree, error) {
	var t Tree
	entries, err := os.ReadDir(dir)
	if err != nil {
		return t, err
	}
	for _, e := range entries {
		t.Root = append(t.Root, e.Name())
	}
	if t.Docs, t.Notes, t.Names, err = loadDocs(dir); err != nil {
		return t, err
	}
	listed, err := list(ctx, dir, "./...")
	if err != nil {
		return t, err
	}
	for _, l := range listed {
		p := Package{Path: rel(l.ImportPath), Name: l.Name, Imports: l.Imports, TestImports: append(l.TestImports, l.XTestImports...), Ignored: l.IgnoredGoFiles}
		parse := func(names []string) (files []File, err error) {
			for _, name := range names {
				f, err := parseFile(filepath.Join(l.Dir, name), nil)
				if err != nil {
					return nil, err
				}
				f.Name = p.Path + "/" + name
				files = append(files, f)
			}
			return files, nil
		}
		if p.Files, err = parse(slices.Concat(l.GoFiles, l.TestGoFiles, l.XTestGoFiles)); err != nil {
			return t, err
		}
		if p.Other, err = parse(l.IgnoredGoFiles); err != nil {
			return t, err
		}
		t.Packages = append(t.Packages, p)
	}
	return t, nil
}

func parseFile(path string, src any) (File, error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, path, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return File{}, fmt.Errorf("parse: %w", err)
	}
	return File{Name: path, Test: strings.HasSuffix(path, "_test.go"), AST: parsed, Set: set}, nil
}

type listedPackage struct {
	ImportPath, Dir, Name                    string
	GoFiles, TestGoFiles, XTestGoFiles       []string
	IgnoredGoFiles                           []string
	Imports, TestImports, XTestImports, Deps []string
}

func list(ctx context.Context, dir string, patterns ...string) ([]listedPackage, error) {
	args := append([]string{"list", "-e", "-json=ImportPath,Dir,Name,GoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports,Deps"}, patterns...)
	out, err := goTool(ctx, dir, args...)
	if err != nil {
		return nil, err
	}
	var all []listedPackage
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listedPackage
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("decode go list: %w", err)
		}
		all = append(all, l)
	}
}

// LoadBinary lists what a main package links and, if its size is limited, builds it as "make
// build" does.
func LoadBinary(ctx context.Context, dir, pkg, out string) (Binary, error) {
	b := Binary{Package: pkg}
	listed, err := list(ctx, dir, "./"+pkg)
	if err != nil {
		return b, err
	}
	for _, l := range listed {
		b.Deps = append(b.Deps, l.Deps...)
	}
	if out == "" {
		return b, nil
	}
	if err := buildBinary(ctx, dir, pkg, out, ""); err != nil {
		return b, err
	}
	info, err := os.Stat(out)
	if err != nil {
		return b, err
	}
	b.Bytes = info.Size()
	return b, nil
}

// buildBinary builds a main package as "make build" does. tags may be empty.
func buildBinary(ctx context.Context, dir, pkg, out, tags string) error {
	_, err := goTool(ctx, dir, "build", "-trimpath", "-buildmode=exe", "-tags="+tags, "-ldflags=-s -w", "-o", out, "./"+pkg)
	return err
}

func goTool(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return out, nil
}

// rel is an import path below the module's root.
func rel(path string) string { return strings.TrimPrefix(strings.TrimPrefix(path, module), "/") }

func inModule(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".") && !inModule(path)
}
