package jsonschema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// Nullable lists the members that can be null although their Go type is not a pointer. Other
// lists are never null.
var Nullable = map[string]bool{
	"Backoff.until": true, "LastError.at": true,
	"Summary.enis": true, "Summary.operations": true, "Summary.backoffs": true, "Summary.subnets": true,
	"Summary.lastErrors": true, "Summary.ec2Calls": true, "PodInterface.differences": true,
	"NodeIPAM.enis": true, "PodReport.interfaces": true, "PodReport.failures": true, "PodReport.blocked": true,
	"BranchInterface.securityGroups": true,
}

// Form is how unknown values are written.
type Form int

const (
	Answered Form = iota // as a daemon answers: an empty string may mean unknown
	Printed              // as daemon/fleet/document writes it: null, and times in whole seconds
)

// Generator makes schemas of Go types.
type Generator struct {
	Comments map[string]string // by "Type" and "Type.Field"
	Version  string            // apiVersion of the documents
	Form     Form
	Problems []string // members without a comment or a JSON name

	defs map[string]any // by type name
}

// ordered is a JSON object that keeps its order.
type ordered []member

type member struct {
	key   string
	value any
}

func (o ordered) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		b = append(append(fmt.Appendf(b, "%q:", m.key), value...), "\n"...)
	}
	return append(b, '}'), nil
}

// Document is the schema of the documents of a kind, which have type t.
func (g *Generator) Document(kind string, t reflect.Type) []byte {
	g.defs = map[string]any{}
	root := g.object(t, kind)
	head := ordered{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"$id", "urn:" + strings.ReplaceAll(g.Version, "/", ":") + ":" + kind},
		{"title", kind},
	}
	doc := slices.Concat(head, root)
	if len(g.defs) > 0 {
		doc = append(doc, member{"$defs", g.defs})
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(doc); err != nil {
		g.Problems = append(g.Problems, err.Error())
	}
	return out.Bytes()
}

// object is the schema of a struct. In a document, the first two members are constants.
func (g *Generator) object(t reflect.Type, kind string) ordered {
	var properties ordered
	required := []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous { // its members are promoted
			for _, m := range g.object(f.Type, kind) {
				switch m.key {
				case "properties":
					properties = append(properties, m.value.(ordered)...)
				case "required":
					required = append(required, m.value.([]string)...)
				}
			}
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		at := t.Name() + "." + name
		schema := g.value(f.Type, at, g.isNullable(f))
		comment := g.Comments[t.Name()+"."+f.Name]
		if g.isNullable(f) {
			comment = nullWording.Replace(comment)
		}
		if comment == "" || name == "" {
			g.Problems = append(g.Problems, fmt.Sprintf("%s.%s has no comment or no JSON name", t.Name(), f.Name))
		}
		schema = append(schema, member{"description", comment})
		if kind != "" && name == "apiVersion" {
			schema = append(schema, member{"const", g.Version})
		}
		if kind != "" && name == "kind" {
			schema = append(schema, member{"const", kind})
		}
		properties = append(properties, member{name, schema})
		if options == "" {
			required = append(required, name)
		}
	}
	return ordered{
		{"type", "object"},
		{"description", g.Comments[t.Name()]},
		{"properties", properties},
		{"required", required},
	}
}

// isNullable reports whether a member is null where a daemon's answer has a value that means
// unknown, such as an empty string.
func (g *Generator) isNullable(f reflect.StructField) bool {
	if g.Form == Answered || f.Tag.Get("null") == "never" {
		return false
	}
	switch f.Type {
	case reflect.TypeFor[netip.Addr](), reflect.TypeFor[netip.Prefix]():
		return true
	}
	return f.Type.Kind() == reflect.String || f.Tag.Get("null") == "zero"
}

// nullWording adapts a member's comment to documents in which the member is null instead.
var nullWording = strings.NewReplacer("empty", "null", `""`, "null", "0 = unknown", "null = unknown", "0: not reported", "null: not reported")

func (g *Generator) value(t reflect.Type, at string, null bool) ordered {
	null = null || Nullable[at]
	if t.Kind() == reflect.Pointer {
		t, null = t.Elem(), true
	}
	kind := func(name string, more ...member) ordered {
		var is any = name
		if null {
			is = []string{name, "null"}
		}
		return append(ordered{{"type", is}}, more...)
	}
	switch t {
	case reflect.TypeFor[time.Time]():
		return kind("string", member{"format", "date-time"})
	case reflect.TypeFor[netip.Addr](), reflect.TypeFor[netip.Prefix]():
		return kind("string")
	}
	switch t.Kind() {
	case reflect.String:
		return kind("string")
	case reflect.Bool:
		return kind("boolean")
	case reflect.Float64:
		return kind("number")
	case reflect.Uint64:
		return kind("integer", member{"minimum", 0})
	case reflect.Int, reflect.Int64:
		return kind("integer")
	case reflect.Slice:
		return kind("array", member{"items", g.value(t.Elem(), "", false)})
	case reflect.Map:
		return kind("object", member{"additionalProperties", g.value(t.Elem(), "", false)})
	case reflect.Struct:
		if g.defs[t.Name()] == nil {
			g.defs[t.Name()] = true // stops the recursion if a type contains itself
			g.defs[t.Name()] = g.object(t, "")
		}
		ref := ordered{{"$ref", "#/$defs/" + t.Name()}}
		if null {
			return ordered{{"anyOf", []any{ref, ordered{{"type", "null"}}}}}
		}
		return ref
	}
	g.Problems = append(g.Problems, fmt.Sprintf("%s: no schema for %s", at, t))
	return nil
}

// FieldComments reads the comments of types and members from the source of packages.
func FieldComments(t *testing.T, dirs ...string) map[string]string {
	t.Helper()
	var files []string
	for _, dir := range dirs {
		in, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, in...)
	}
	out := map[string]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range tree.Decls {
			if decl, ok := d.(*ast.GenDecl); ok && decl.Tok == token.TYPE {
				for _, s := range decl.Specs {
					typeComments(out, decl, s.(*ast.TypeSpec))
				}
			}
		}
	}
	return out
}

func typeComments(out map[string]string, decl *ast.GenDecl, spec *ast.TypeSpec) {
	words := func(g *ast.CommentGroup) string { return strings.Join(strings.Fields(g.Text()), " ") }
	name := spec.Name.Name
	out[name] = words(decl.Doc)
	if st, ok := spec.Type.(*ast.StructType); ok {
		for _, f := range st.Fields.List {
			for _, id := range f.Names {
				out[name+"."+id.Name] = words(f.Comment)
			}
		}
	}
}
