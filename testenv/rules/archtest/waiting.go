package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
)

// ownLimits are the ways in which a test would set a limit of its own on the real clock.
var ownLimits = map[string][]string{
	"context": {"WithTimeout", "WithTimeoutCause"},
	"time":    {"After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Since", "Until"},
}

// deadlines take a moment, which must be one of testenv's.
var deadlines = []string{"WithDeadline", "WithDeadlineCause", "SetDeadline", "SetReadDeadline", "SetWriteDeadline"}

// realTime begins the comment of a line that needs the real clock; the reason follows.
const realTime = "//realtime: "

// checkWaiting: a test has no limit but go test's, which a busy machine does not reach. It
// waits, and bounds what must be fast, with testenv/wait.go. Tests with testing/synctest have a
// clock of their own, and benchmarks measure the real one.
func checkWaiting(t Tree) []Violation {
	var out []Violation
	for _, p := range t.Packages {
		for _, f := range slices.Concat(p.Files, p.Other) { // those of the nightly tests, too
			if !f.Test || strings.HasSuffix(f.Name, "_bench_test.go") || f.name("testing/synctest") != "" {
				continue
			}
			out = append(out, f.limits()...)
		}
	}
	return out
}

// limits finds what ends by the real clock, except on lines that say why.
func (f File) limits() []Violation {
	said := map[int]bool{}
	for _, group := range f.AST.Comments {
		for _, c := range group.List {
			if why, ok := strings.CutPrefix(c.Text, realTime); ok && strings.TrimSpace(why) != "" {
				said[f.Set.Position(c.Pos()).Line] = true
			}
		}
	}
	var out []Violation
	add := func(at ast.Node, what string) {
		if line := f.Set.Position(at.Pos()).Line; !said[line] {
			out = append(out, Violation{fmt.Sprintf("%s:%d", f.Name, line),
				fmt.Sprintf("uses %s: wait with testenv.Eventually, Never, Receive or Within, or end the line with %q and a reason", what, realTime)})
		}
	}
	local := map[string]string{}
	for imported := range ownLimits {
		local[f.name(imported)] = imported
	}
	delete(local, "")
	now := func(n ast.Node) (found bool) {
		ast.Inspect(n, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "Now" {
				x, ok := sel.X.(*ast.Ident)
				found = found || ok && local[x.Name] == "time"
			}
			return !found
		})
		return found
	}
	ast.Inspect(f.AST, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && slices.Contains(ownLimits[local[x.Name]], n.Sel.Name) {
				add(n, local[x.Name]+"."+n.Sel.Name)
			}
		case *ast.CallExpr:
			sel, ok := n.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			receiver, called := sel.X.(*ast.CallExpr)
			switch name := sel.Sel.Name; {
			case slices.Contains(deadlines, name) && slices.ContainsFunc(n.Args, func(e ast.Expr) bool { return now(e) }):
				add(n, name+" of a moment that is not testenv.Soon or testenv.Later")
			case called && (name == "After" || name == "Before") && now(receiver.Fun):
				add(n, "time.Now()."+name)
			}
		}
		return true
	})
	return out
}

// name returns the name by which a file knows a package, "" if it does not import it.
func (f File) name(imported string) string {
	for _, imp := range f.AST.Imports {
		if p, err := strconv.Unquote(imp.Path.Value); err == nil && p == imported {
			if imp.Name != nil {
				return imp.Name.Name
			}
			return path.Base(p)
		}
	}
	return ""
}
