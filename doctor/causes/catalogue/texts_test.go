package catalogue

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cnictl/daemon/api/cause"
	"cnictl/testenv/text/golden"
)

// textDirs hold what runs on a node. Other commands print to those who call them.
var textDirs = []string{
	"daemon", "plugin", "cmd/aws-cni", "cmd/aws-cni-grpc", "cmd/aws-k8s-agent", "cmd/aws-vpc-cni", "cmd/aws-vpc-cni-init",
	"cmd/egress-cni", "cmd/portmap", "cmd/cni-metrics-helper",
}

// notPrinted are packages below textDirs whose texts nobody pastes: documents and what cnictl uses.
var notPrinted = []string{
	"daemon/fleet", "daemon/api/introspect", "daemon/api/promtext", "daemon/install", "daemon/iam", "daemon/scrub", "daemon/internal/metrics",
}

// TestTexts: texts.txt has every constant text that our code logs, returns as an error or sends as
// an event. With -update it is written.
func TestTexts(t *testing.T) {
	t.Parallel()
	const root = "../../.."
	packages := map[string][]*ast.File{} // by directory
	for _, dir := range textDirs {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			name := filepath.ToSlash(strings.TrimPrefix(path, root+"/"))
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "testdata" || slices.Contains(notPrinted, name)):
				return filepath.SkipDir
			case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasPrefix(d.Name(), "zz_"),
				strings.HasSuffix(name, "_test.go"), strings.HasSuffix(name, ".pb.go"):
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			packages[filepath.ToSlash(filepath.Dir(name))] = append(packages[filepath.ToSlash(filepath.Dir(name))], file)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	x := &extractor{consts: map[string]string{}, codes: map[string]string{}, texts: map[string]map[string]string{}}
	for range 3 { // constants refer to others
		for _, dir := range slices.Sorted(maps.Keys(packages)) {
			for _, file := range packages[dir] {
				x.constants(dir, file)
			}
		}
	}
	for dir, files := range packages {
		x.dir, x.texts[dir] = dir, map[string]string{}
		for _, file := range files {
			x.file(file)
		}
	}
	golden.File(t, "texts.txt", x.print())
}

// extractor collects texts by directory, each with its level and code.
type extractor struct {
	dir    string
	pkg    string
	consts map[string]string // by package.Name
	codes  map[string]string
	texts  map[string]map[string]string
}

func (x *extractor) constants(dir string, file *ast.File) {
	x.pkg = file.Name.Name
	for _, d := range file.Decls {
		gen, ok := d.(*ast.GenDecl)
		if !ok || gen.Tok != token.CONST {
			continue
		}
		for _, spec := range gen.Specs {
			v := spec.(*ast.ValueSpec)
			for i, name := range v.Names {
				if i >= len(v.Values) {
					continue
				}
				if text, ok := x.value(v.Values[i]); ok {
					x.consts[x.pkg+"."+name.Name] = text
					if dir == "daemon/api/cause" && cause.Code(text).Title() != "" {
						x.codes[name.Name] = text
					}
				}
			}
		}
	}
}

var verb = regexp.MustCompile(`%[-+# 0-9.*\[\]]*[a-zA-Z]`)

// value evaluates a text. What is not constant is "…".
func (x *extractor) value(e ast.Expr) (text string, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.ParenExpr:
		return x.value(e.X)
	case *ast.Ident:
		text, ok := x.consts[x.pkg+"."+e.Name]
		return text, ok
	case *ast.SelectorExpr:
		if pkg, is := e.X.(*ast.Ident); is {
			text, ok := x.consts[pkg.Name+"."+e.Sel.Name]
			return text, ok
		}
	case *ast.BinaryExpr:
		a, isA := x.value(e.X)
		b, isB := x.value(e.Y)
		if e.Op != token.ADD || !isA && !isB {
			return "", false
		}
		if !isA {
			a = "…"
		}
		if !isB {
			b = "…"
		}
		return a + b, true
	case *ast.CallExpr:
		if called(e) == "Sprintf" && len(e.Args) > 0 {
			return x.value(e.Args[0])
		}
	}
	return "", false
}

func called(e *ast.CallExpr) string {
	switch fun := e.Fun.(type) {
	case *ast.SelectorExpr:
		return fun.Sel.Name
	case *ast.Ident:
		return fun.Name
	}
	return ""
}

// levels are those of functions that log or make an error.
var levels = map[string]string{
	"Debug": "debug", "DebugContext": "debug", "Info": "info", "InfoContext": "info", "Warn": "warn", "WarnContext": "warn",
	"Error": "error", "ErrorContext": "error", "Errorf": "error", "New": "error", "Newf": "error", "Wrap": "error", "Wrapf": "error",
}

func (x *extractor) file(file *ast.File) {
	x.pkg = file.Name.Name
	done := map[ast.Node]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec, *ast.Field:
			if f, ok := n.(*ast.Field); ok && f.Tag == nil {
				return true
			}
			return false
		case *ast.CallExpr:
			level := levels[called(n)]
			code := ""
			for _, arg := range n.Args {
				if sel, ok := arg.(*ast.SelectorExpr); ok {
					if pkg, is := sel.X.(*ast.Ident); is && pkg.Name == "cause" {
						code = x.codes[sel.Sel.Name]
					}
				}
			}
			if level == "" && code == "" {
				return true
			}
			for _, arg := range n.Args {
				if text, ok := x.value(arg); ok {
					x.add(text, level, code)
					ast.Inspect(arg, func(n ast.Node) bool { done[n] = true; return true })
				}
			}
		case *ast.BinaryExpr:
			if text, ok := x.value(n); ok && !done[n] {
				x.add(text, "", "")
				ast.Inspect(n, func(n ast.Node) bool { done[n] = true; return true })
			}
		case *ast.BasicLit:
			if text, ok := x.value(n); ok && !done[n] {
				x.add(text, "", "")
			}
		}
		return true
	})
}

var (
	word         = regexp.MustCompile(`[A-Za-z]{2,}`)
	sentenceLike = regexp.MustCompile(`[A-Za-z,:] [A-Za-z]`)
)

// common are texts of any program in Go.
var common = []string{
	"context deadline exceeded", "rpc error: code = … desc =", "does not exist", "connect: connection refused", "address already in use",
}

// add keeps texts that are sentences, the ones with a code or the severest level first.
func (x *extractor) add(text, level, code string) {
	text = verb.ReplaceAllString(text, "…")
	text = strings.Join(strings.Fields(text), " ")
	text = regexp.MustCompile(`…(\W{0,2}…)+`).ReplaceAllString(text, "…")
	text = strings.Trim(text, " …:,;()")
	if len(word.FindAllString(text, -1)) < 3 || !sentenceLike.MatchString(text) || len(text) > 300 || slices.Contains(common, text) {
		return
	}
	kind := level
	if kind == "" {
		kind = "text"
	}
	if code != "" {
		kind += ":" + code
	}
	rank := func(kind string) int {
		level, code, _ := strings.Cut(kind, ":")
		n := slices.Index([]string{"text", "debug", "info", "warn", "error"}, level)
		if code != "" {
			n += 10
		}
		return n
	}
	if old, ok := x.texts[x.dir][text]; !ok || rank(kind) > rank(old) || rank(kind) == rank(old) && kind < old {
		x.texts[x.dir][text] = kind
	}
}

func (x *extractor) print() []byte {
	var out bytes.Buffer
	out.WriteString("# Made by make generate from the code: \"@ package\", then its texts, each with its level and the code of its cause.\n")
	for _, dir := range slices.Sorted(maps.Keys(x.texts)) {
		if len(x.texts[dir]) == 0 {
			continue
		}
		fmt.Fprintf(&out, "@ %s\n", dir)
		for _, text := range slices.Sorted(maps.Keys(x.texts[dir])) {
			fmt.Fprintf(&out, "%s %s\n", x.texts[dir][text], text)
		}
	}
	return out.Bytes()
}
