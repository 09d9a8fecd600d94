package archtest

import (
	"go/ast"
	"slices"
)

const keeperPath = module + "/daemon/keeper"

// mayMistake are the packages that know the deliberate mistakes of the keeper: itself,
// and the simulation that shows that it finds them.
var mayMistake = []string{"daemon/keeper", "daemon/sim"}

// checkMistakes: no daemon that is shipped makes the deliberate mistakes of keeper.Bugs.
func checkMistakes(t Tree) []Violation {
	var out []Violation
	for _, p := range t.Packages {
		if slices.Contains(mayMistake, p.Path) {
			continue
		}
		for _, f := range p.Files {
			if f.Test || !f.imports(keeperPath) {
				continue
			}
			add := func(n ast.Node) {
				out = append(out, Violation{f.position(n), "sets deliberate mistakes (keeper.Bugs): only tests and daemon/sim may"})
			}
			ast.Inspect(f.AST, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.KeyValueExpr: // keeper.Options{Bugs: …}
					if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Bugs" {
						add(n)
						return false
					}
				case *ast.SelectorExpr: // options.Bugs = …, keeper.Bugs{…}
					if n.Sel.Name == "Bugs" {
						add(n)
						return false
					}
				}
				return true
			})
		}
	}
	return out
}

func (f File) imports(path string) bool {
	return slices.ContainsFunc(f.AST.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"`+path+`"` })
}
