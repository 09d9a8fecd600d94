package archtest

import (
	"go/ast"
	"go/token"
	"path"
	"strings"
)

// crashMarker appears in every binary with crash points and in no other.
const crashMarker = "CNI_CRASH_"

// crashTag is the build tag of files that implement crash points.
const crashTag = "crashpoints"

// checkCrashPoints: no file of a default build can kill the process, and each marked place
// names a constant of daemon/api/crashpoint.
func checkCrashPoints(t Tree) []Violation {
	var out []Violation
	for _, p := range t.Packages {
		if at, _ := place(p.Path); at.layer == testSupply {
			continue
		}
		for _, f := range p.Files {
			if f.Test {
				continue
			}
			ast.Inspect(f.AST, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.BasicLit:
					if n.Kind == token.STRING && strings.Contains(n.Value, crashMarker) {
						out = append(out, Violation{f.position(n), "has " + n.Value + ": crash points are in files with the build tag " + crashTag})
					}
				case *ast.CallExpr:
					if isSelector(n.Fun, "crashpoint", "Here") && !isSelector(n.Args[0], "crashpoint", "") {
						out = append(out, Violation{f.position(n), "marks a crash point that is no constant of daemon/api/crashpoint"})
					}
				}
				return true
			})
		}
		for _, name := range p.Ignored {
			if p.Path != "daemon/api/crashpoint" && strings.Contains(path.Base(name), "crash") {
				out = append(out, Violation{p.Path + "/" + name, "is built under a tag: only daemon/api/crashpoint differs between builds"})
			}
		}
	}
	return out
}

// isSelector reports whether an expression is pkg.name, or any pkg.X if name is empty.
func isSelector(e ast.Expr, pkg, name string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == pkg && (name == "" || sel.Sel.Name == name)
}
