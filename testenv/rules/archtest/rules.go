package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
)

// rules are all rules for the tree, by name.
var rules = map[string]func(Tree) []Violation{
	"layout":       checkLayout,
	"layers":       checkLayers,
	"test support": checkTestSupport,
	"wire only":    checkWireOnly,
	"purity":       checkPurity,
	"edges":        checkEdges,
	"docs":         checkDocs,
	"links":        checkLinks,
	"doc links":    checkDocLinks,
	"citations":    checkCitations,
	"crash points": checkCrashPoints,
	"waiting":      checkWaiting,
}

func checkLayout(t Tree) []Violation {
	var out []Violation
	for _, name := range t.Root {
		if !strings.HasPrefix(name, ".") && !slices.Contains(topLevel, name) {
			out = append(out, Violation{name, "top-level names are fixed: " + strings.Join(topLevel, ", ")})
		}
	}
	for _, p := range t.Packages {
		if base := path.Base(p.Path); slices.Contains(meaningless, base) || slices.Contains(meaningless, p.Name) {
			out = append(out, Violation{p.Path, fmt.Sprintf("name the package after a noun of the domain, not %q", base)})
		}
		if strings.Contains(p.Name, "_") && !strings.HasSuffix(p.Name, "_test") {
			out = append(out, Violation{p.Path, "package names have no underscores"})
		}
		if _, ok := place(p.Path); !ok {
			out = append(out, Violation{p.Path, "unknown package: give it a layer in testenv/rules/archtest/layers.go, which says what each layer may do"})
		}
	}
	return out
}

func checkLayers(t Tree) []Violation {
	var out []Violation
	for _, p := range t.Packages {
		from, ok := place(p.Path)
		if !ok {
			continue
		}
		for _, imp := range p.Imports {
			if !inModule(imp) {
				continue
			}
			to, ok := place(rel(imp))
			if !ok || allowed(from, to, p.Path, rel(imp)) {
				continue
			}
			rule := fmt.Sprintf("imports %s: layer %s may not import layer %s (imports go downward only)", rel(imp), from.layer.name, to.layer.name)
			if from.layer == adapter && to.layer == adapter {
				rule = fmt.Sprintf("imports %s: adapters never import each other; the shell joins them", rel(imp))
			}
			out = append(out, Violation{p.Path, rule})
		}
	}
	return out
}

func allowed(from, to placement, fromPkg, toPkg string) bool {
	if from.layer.height > to.layer.height {
		return true
	}
	if from.group && to.group && from.layer == to.layer && sameTree(fromPkg, toPkg) {
		return true
	}
	return slices.ContainsFunc(exceptions, func(e exception) bool { return e.from == fromPkg && e.to == toPkg })
}

// sameTree reports whether two packages are in the same tree: a binary with its internal
// packages, tui, doctor or testenv.
func sameTree(a, b string) bool {
	depth := 1
	if strings.HasPrefix(a, "cmd/") {
		depth = 2
	}
	root := func(p string) string {
		parts := strings.SplitN(p, "/", depth+1)
		return strings.Join(parts[:min(depth, len(parts))], "/")
	}
	return root(a) == root(b)
}

// checkTestSupport: only tests and testenv/cmd link test support.
func checkTestSupport(t Tree) []Violation {
	var out []Violation
	for _, p := range t.Packages {
		if from, ok := place(p.Path); ok && from.layer == testSupply {
			continue
		}
		for _, imp := range p.Imports {
			if to, ok := place(rel(imp)); inModule(imp) && ok && to.layer == testSupply {
				out = append(out, Violation{p.Path, fmt.Sprintf("imports %s: testenv and test support are imported from _test.go files and testenv/cmd only", rel(imp))})
			}
		}
	}
	return out
}

func checkWireOnly(t Tree) []Violation {
	var out []Violation
	for _, p := range t.Packages {
		if !matchAny(wireOnly, p.Path) {
			continue
		}
		for _, imp := range p.Imports {
			target := rel(imp)
			to, ok := place(target)
			if !inModule(imp) || !strings.HasPrefix(target, "daemon/") || !ok || to.layer.height <= contract.height || slices.Contains(wireAlso, target) || strings.HasPrefix(target, "daemon/fleet/") {
				continue
			}
			out = append(out, Violation{p.Path, fmt.Sprintf("imports %s: plugin, tui, doctor and cnictl reach the daemon through layers 0 and 1, fleet and introspect/client", target)})
		}
	}
	return out
}

// impureImports are the parts of the standard library that pure packages may not import.
// Everything outside the standard library is forbidden there anyway.
var impureImports = []string{
	"os", "os/exec", "os/signal", "os/user", "net", "net/http", "net/rpc", "net/smtp", "net/textproto", "log", "log/slog", "log/syslog",
	"syscall", "io/ioutil", "math/rand", "math/rand/v2", "crypto/rand", "database/sql", "plugin", "testing", "unsafe", "flag", "runtime/debug",
}

// impureCalls read the clock or wait for it. A context may be passed on, not created.
var impureCalls = map[string][]string{
	"context": {"WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause", "Background", "TODO"},
	"time":    {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"},
}

func checkPurity(t Tree) []Violation {
	var out []Violation
	for _, p := range t.Packages {
		at, ok := place(p.Path)
		if !ok || !at.layer.pure {
			continue
		}
		for _, imp := range p.Imports {
			switch {
			case inModule(imp):
			case !standard(imp):
				out = append(out, Violation{p.Path, fmt.Sprintf("imports %s: layer 0 uses the standard library only", imp)})
			case slices.Contains(impureImports, imp):
				out = append(out, Violation{p.Path, fmt.Sprintf("imports %s: layer 0 decides and does not act; the time, seeds and settings are arguments", imp)})
			}
		}
		for _, f := range p.Files {
			if f.Test {
				continue
			}
			for _, c := range f.uses(impureCalls) {
				out = append(out, Violation{c.where, fmt.Sprintf("uses %s: on layer 0 the time is an argument", c.name)})
			}
		}
	}
	return out
}

var (
	globalLogs = map[string][]string{"log/slog": {"Default", "SetDefault"}, "log": {"Print", "Printf", "Println", "Fatal", "Fatalf", "Fatalln", "Panic", "Panicf"}}
	exiting    = map[string][]string{"os": {"Exit"}}
)

// checkEdges: only main.go exits; nothing logs through a global or runs before main. What else
// belongs to main, .golangci.yml knows.
func checkEdges(t Tree) []Violation {
	var out []Violation
	for _, p := range t.Packages {
		at, _ := place(p.Path)
		support := at.layer == testSupply
		for _, f := range p.Files {
			main := p.Name == "main" && path.Base(f.Name) == "main.go"
			add := func(uses map[string][]string, rule string) {
				for _, c := range f.uses(uses) {
					out = append(out, Violation{c.where, fmt.Sprintf("uses %s: %s", c.name, rule)})
				}
			}
			if !main && !support && !f.Test {
				add(globalLogs, "log through the *slog.Logger that was passed in")
				add(exiting, "return an error; main chooses the exit status")
			}
			if !f.Test && !generated(f.AST) {
				for _, d := range f.AST.Decls {
					if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
						out = append(out, Violation{f.position(fn), "no init functions: main builds what is needed"})
					}
				}
			}
		}
	}
	return out
}

// checkDocs: each package has a package comment.
func checkDocs(t Tree) []Violation {
	var out []Violation
	for _, p := range t.Packages {
		documented, onlyTests := false, true
		for _, f := range p.Files {
			onlyTests = onlyTests && f.Test
			documented = documented || !f.Test && f.AST.Doc != nil
		}
		if !documented && !onlyTests {
			out = append(out, Violation{p.Path, "has no package comment (doc.go: job, invariants, what it must not do)"})
		}
	}
	return out
}

// checkBudget checks that a binary keeps its budget.
func checkBudget(b budget, bin Binary) []Violation {
	var out []Violation
	for _, dep := range bin.Deps {
		for _, f := range b.forbidden {
			if under(dep, f) {
				out = append(out, Violation{b.pkg, fmt.Sprintf("links %s, which is outside its budget (%s): %s", dep, f, b.why)})
			}
		}
	}
	if b.maxBytes > 0 && bin.Bytes > b.maxBytes {
		out = append(out, Violation{b.pkg, fmt.Sprintf("is %d bytes, at most %d: %s", bin.Bytes, b.maxBytes, b.why)})
	}
	return out
}

func under(path, prefix string) bool { return path == prefix || strings.HasPrefix(path, prefix+"/") }

func generated(f *ast.File) bool { return ast.IsGenerated(f) }

type use struct{ where, name string }

// uses finds selector expressions on imported packages, such as time.Now, including renamed
// imports.
func (f File) uses(names map[string][]string) []use {
	local := map[string]string{}
	for _, imp := range f.AST.Imports {
		p, err := strconv.Unquote(imp.Path.Value)
		if err != nil || names[p] == nil {
			continue
		}
		name := path.Base(p)
		if imp.Name != nil {
			name = imp.Name.Name
		}
		local[name] = p
	}
	if len(local) == 0 {
		return nil
	}
	var out []use
	ast.Inspect(f.AST, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && slices.Contains(names[local[x.Name]], sel.Sel.Name) {
			out = append(out, use{f.position(sel), path.Base(local[x.Name]) + "." + sel.Sel.Name})
		}
		return true
	})
	return out
}

func (f File) position(n ast.Node) string {
	return fmt.Sprintf("%s:%d", f.Name, f.Set.Position(n.Pos()).Line)
}
