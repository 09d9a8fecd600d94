package archtest

import (
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
)

// symbols are the names that a package declares, its tests included.
type symbols struct {
	top     map[string]bool            // types, functions, constants, variables
	members map[string]map[string]bool // of types: fields and methods
	open    map[string]bool            // types that may have members of types elsewhere
	local   map[string]bool            // every declared name, also members, parameters and variables in functions
}

// symbolsOf collects what files declare.
func symbolsOf(files []File) *symbols {
	s := &symbols{map[string]bool{}, map[string]map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for _, f := range files {
		for _, d := range f.AST.Decls {
			s.declared(d)
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Field:
				s.locals(n.Names...)
			case *ast.ValueSpec:
				s.locals(n.Names...)
			case *ast.TypeSpec:
				s.locals(n.Name)
			case *ast.FuncDecl:
				s.locals(n.Name)
			case *ast.AssignStmt:
				for _, e := range n.Lhs {
					if name, ok := e.(*ast.Ident); ok && n.Tok == token.DEFINE {
						s.locals(name)
					}
				}
			}
			return true
		})
	}
	return s
}

func (s *symbols) locals(names ...*ast.Ident) {
	for _, n := range names {
		s.local[n.Name] = true
	}
}

func (s *symbols) declared(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			s.top[d.Name.Name] = true
		} else if of := baseName(d.Recv.List[0].Type); of != "" {
			s.member(of, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				for _, n := range spec.Names {
					s.top[n.Name] = true
				}
			case *ast.TypeSpec:
				s.top[spec.Name.Name] = true
				s.typed(spec)
			}
		}
	}
}

func (s *symbols) typed(spec *ast.TypeSpec) {
	name := spec.Name.Name
	var fields *ast.FieldList
	switch t := spec.Type.(type) {
	case *ast.StructType:
		fields = t.Fields
	case *ast.InterfaceType:
		fields = t.Methods
	case *ast.Ident, *ast.SelectorExpr:
		s.open[name] = true // what the other type has
		return
	default:
		return
	}
	for _, f := range fields.List {
		for _, n := range f.Names {
			s.member(name, n.Name)
		}
		if len(f.Names) == 0 { // embedded
			s.open[name] = true
			s.member(name, baseName(f.Type))
		}
	}
}

func (s *symbols) member(of, name string) {
	if s.members[of] == nil {
		s.members[of] = map[string]bool{}
	}
	s.members[of][name] = true
}

// baseName is the name of a receiver's or embedded field's type.
func baseName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return baseName(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.IndexExpr:
		return baseName(e.X)
	case *ast.IndexListExpr:
		return baseName(e.X)
	}
	return ""
}

// has reports whether Name or Type.Member is declared.
func (s *symbols) has(parts []string) bool {
	switch len(parts) {
	case 1:
		return s.top[parts[0]]
	case 2:
		return s.top[parts[0]] && (s.members[parts[0]][parts[1]] || s.open[parts[0]])
	}
	return false
}

var (
	// A name in brackets, as go doc reads links: with blanks or punctuation on both sides; a
	// pointer, a member of a type, or qualified by a package. A lower-case word is one only with
	// a capital inside.
	docLink = regexp.MustCompile(`(?:^|[\s\pP])\[\*?((?:[a-z][\w/.-]*\.)?[A-Z]\w*(?:\.\w+)?|[a-z]+[A-Z]\w*)\](?:$|[\s\pP])`)
	// The name after "see" at the start of a clause; elsewhere the verb has a subject. A page of
	// a manual, such as proc(5), is no name.
	seeName = regexp.MustCompile(`(?:^S|[.;:,(] \(?[Ss]|\([Ss])ee ([A-Za-z_][\w/.-]*\w)(\(\d\))?`)
)

// prose are lower-case words after "see" that are no names.
var prose = strings.Fields("a all also an any both each every how it its nothing of one our package section that the their them there these this those what where whether which why above below issue")

// checkDocLinks: what a comment of Go code refers to, in brackets or after "see", exists. Of
// other modules only the import is checked.
func checkDocLinks(t Tree) []Violation {
	d := references{tree: t, byPath: map[string]*symbols{}, byName: map[string][]*symbols{}}
	for _, p := range t.Packages {
		s := symbolsOf(slices.Concat(p.Files, p.Other))
		d.byPath[p.Path] = s
		d.byName[p.Name] = append(d.byName[p.Name], s)
	}
	var out []Violation
	for _, p := range t.Packages {
		for _, f := range p.Files {
			if generated(f.AST) {
				continue
			}
			for _, group := range f.AST.Comments {
				for _, name := range d.stale(p, f, proseOf(group)) {
					out = append(out, Violation{f.position(group), "a comment refers to " + name + ", which does not exist"})
				}
			}
		}
	}
	return out
}

// proseOf is the text of a comment in one line, without indented code.
func proseOf(group *ast.CommentGroup) string {
	var lines []string
	for line := range strings.Lines(group.Text()) {
		if !strings.HasPrefix(line, "\t") && !strings.HasPrefix(line, "    ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines, " ")
}

type references struct {
	tree   Tree
	byPath map[string]*symbols
	byName map[string][]*symbols
}

// stale returns the references of a text that lead nowhere.
func (d *references) stale(p Package, f File, text string) (out []string) {
	for rest := text; ; {
		m := docLink.FindStringSubmatchIndex(rest)
		if m == nil {
			break
		}
		if name := rest[m[2]:m[3]]; !d.linked(p, f, name) {
			out = append(out, "["+name+"]")
		}
		rest = rest[m[3]+1:]
	}
	for _, m := range seeName.FindAllStringSubmatch(text, -1) {
		name := m[1]
		if shout := strings.ToUpper(name) == name; m[2] == "" && !shout && !slices.Contains(prose, name) && !d.seen(p, f, name) {
			out = append(out, name)
		}
	}
	return out
}

// linked reports whether a doc link leads to a declaration.
func (d *references) linked(p Package, f File, name string) bool {
	dir, last := path.Split(name)
	parts := strings.Split(last, ".")
	if ast.IsExported(name) || len(parts) == 1 {
		return d.byPath[p.Path].has(parts)
	}
	return slices.ContainsFunc(d.packages(f, dir+parts[0]), func(s *symbols) bool { return s == nil || s.has(parts[1:]) })
}

// packages returns the packages that a name may mean: an import of the file, a package of the
// module or of the standard library. nil is one outside the module.
func (d *references) packages(f File, name string) []*symbols {
	for _, imp := range f.AST.Imports {
		full := strings.Trim(imp.Path.Value, "\"`")
		as := path.Base(full)
		if imp.Name != nil {
			as = imp.Name.Name
		}
		switch {
		case inModule(full) && (as == name || full == name):
			return []*symbols{d.byPath[rel(full)]}
		case !inModule(full) && (full == name || strings.Contains(as, name)): // smithy-go has the package smithy
			return []*symbols{nil}
		}
	}
	if s := d.byPath[rel(name)]; s != nil {
		return []*symbols{s}
	}
	if s := d.byName[name]; s != nil {
		return s
	}
	if _, ok := comment.DefaultLookupPackage(name); ok {
		return []*symbols{nil}
	}
	return nil
}

// seen reports whether the name after "see" is one of a declaration, a package or a file.
func (d *references) seen(p Package, f File, name string) bool {
	if strings.Contains(name, "/") {
		return d.tree.Names[name] || d.byPath[name] != nil
	}
	own, parts := d.byPath[p.Path], strings.Split(name, ".")
	if own.local[parts[0]] {
		return len(parts) == 1 || own.local[parts[1]]
	}
	return d.linked(p, f, name) || d.byName[name] != nil || d.tree.Names[name] || d.tree.Names[p.Path+"/"+name]
}

// citation is a reference to notes that the repository does not have.
var citation = regexp.MustCompile(`(?:^|[^\w/.-])spec/(?:[\w-]+\.md|…|[\s.,;:)]|$)|\bspec: \w+ §|\w\.md §`)

// checkCitations: no comment and no documentation cites notes outside the repository: a fact
// names a source that readers have.
func checkCitations(t Tree) []Violation {
	var out []Violation
	report := func(where, line string) {
		if citation.MatchString(line) {
			out = append(out, Violation{where, "cites a text that the repository does not have: " + strings.TrimSpace(line)})
		}
	}
	for _, p := range t.Packages {
		for _, f := range slices.Concat(p.Files, p.Other) {
			for _, group := range f.AST.Comments {
				for _, c := range group.List {
					report(f.position(c), c.Text)
				}
			}
		}
	}
	for _, d := range slices.Concat(t.Docs, t.Notes) {
		for i, line := range strings.Split(d.Text, "\n") {
			report(fmt.Sprintf("%s:%d", d.Name, i+1), line)
		}
	}
	return out
}
