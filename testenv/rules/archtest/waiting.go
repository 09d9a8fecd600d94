package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
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

// limited take how long they may wait, which must be what testenv leaves them, since a busy machine
// is slower than any constant.
var limited = []string{"AskEcho", "AskEchoAtOnce", "Dial", "DialTimeout", "Ping"}

// realTime begins the comment of a line that needs the real clock; the reason follows.
const realTime = "//realtime: "

// realClock are parts of the names of test files, beside the package's, whose moments are always those
// of the real clock. Tests of decisions have a clock that they set.
var realClock = []string{"_kernel_", "_kubeapi_", "_binary_", "_cluster_", "testenv/node/", "testenv/kube/"}

// checkWaiting: a test has no limit but go test's, which a busy machine does not reach. It
// waits, and bounds what must be fast, with testenv/wait.go. So does the test bed where it is
// part of a test. Tests with testing/synctest have a clock of their own, and benchmarks measure
// the real one.
func checkWaiting(t Tree) []Violation {
	var out []Violation
	for _, p := range t.Packages {
		for _, f := range slices.Concat(p.Files, p.Other) { // those of the nightly tests, too
			bed := p.Path == "testenv" || strings.HasPrefix(p.Path, "testenv/")
			switch name := path.Base(f.Name); {
			case p.Path == "testenv" && (name == "wait.go" || name == "main.go"): // they are what others use
				continue
			case f.Test && (strings.HasSuffix(name, "_bench_test.go") || f.name("testing/synctest") != ""):
				continue
			case !f.Test && (!bed || f.name("testing") == ""):
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
	real := slices.ContainsFunc(realClock, func(part string) bool { return strings.Contains(f.Name, part) })
	durations := f.durations(local)
	ast.Inspect(f.AST, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if real && durations.bound(n) {
				add(n, "a comparison of moments with a duration")
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Timeout" && durations.constant(n.Value) {
				add(n, "a Timeout")
			}
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				if to, ok := to.(*ast.SelectorExpr); ok && to.Sel.Name == "Timeout" && i < len(n.Rhs) && durations.constant(n.Rhs[i]) {
					add(n, "a Timeout")
				}
			}
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
			case real && slices.Contains(limited, name) && slices.ContainsFunc(n.Args, durations.constant):
				add(n, name+" with a limit that is not testenv.Left")
			case called && (name == "After" || name == "Before") && now(receiver.Fun):
				add(n, "time.Now()."+name)
			}
		}
		return true
	})
	return out
}

// durations are the names in a file that stand for durations.
type durations struct {
	time      string          // the file's name for the package
	constants map[string]bool // declared with one of its units
	measured  map[string]bool // how long something took: the difference of two moments
}

func (f File) durations(local map[string]string) durations {
	d := durations{constants: map[string]bool{}, measured: map[string]bool{}}
	for name, imported := range local {
		if imported == "time" {
			d.time = name
		}
	}
	ast.Inspect(f.AST, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for i, value := range n.Values {
				if _, call := value.(*ast.CallExpr); !call && d.constant(value) {
					d.constants[n.Names[i].Name] = true
				}
			}
		case *ast.AssignStmt:
			for i, value := range n.Rhs {
				if to, ok := n.Lhs[i].(*ast.Ident); ok && d.difference(value) {
					d.measured[to.Name] = true
				}
			}
		}
		return true
	})
	return d
}

func contains(n ast.Node, is func(ast.Node) bool) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		found = found || n != nil && is(n)
		return !found
	})
	return found
}

// constant reports whether an expression names a duration, as 3*time.Second does.
func (d durations) constant(e ast.Expr) bool {
	return contains(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			return ok && d.time != "" && x.Name == d.time && slices.Contains([]string{"Hour", "Minute", "Second", "Millisecond", "Microsecond"}, n.Sel.Name)
		case *ast.Ident:
			return d.constants[n.Name]
		}
		return false
	})
}

// difference reports whether an expression is one of two moments.
func (d durations) difference(e ast.Expr) bool {
	return contains(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			sel, ok := n.Fun.(*ast.SelectorExpr)
			return ok && sel.Sel.Name == "Sub" && len(n.Args) == 1
		case *ast.Ident:
			return d.measured[n.Name]
		}
		return false
	})
}

// bound reports whether a comparison asks if something took longer than a constant. That it took
// at least so long is no limit: a busy machine does not break it.
func (d durations) bound(e *ast.BinaryExpr) bool {
	more, less := e.X, e.Y
	switch e.Op {
	case token.GTR, token.GEQ:
	case token.LSS, token.LEQ:
		more, less = less, more
	default:
		return false
	}
	negative := contains(more, func(n ast.Node) bool { u, ok := n.(*ast.UnaryExpr); return ok && u.Op == token.SUB })
	return d.difference(more) && d.constant(less) || d.difference(less) && d.constant(more) && negative
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
