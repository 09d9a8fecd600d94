package introspect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cnictl/testenv/golden"
)

// documents are the types that have a schema.
var documents = map[string]any{
	KindConfig: NodeConfig{}, KindEvents: NodeEvents{}, KindFailures: NodeFailures{}, KindFault: Fault{}, KindLogs: NodeLogs{},
	KindPlan: NodePlan{}, KindPod: NodePod{}, KindSummary: Summary{}, KindSchemas: SchemaList{},
}

// nullable says where null may stand although the Go type is no pointer, and where
// a list never is null.
var nullable = map[string]bool{
	"Backoff.until": true, "LastError.at": true,
	"Summary.enis": true, "Summary.operations": true, "Summary.backoffs": true, "Summary.subnets": true,
	"Summary.lastErrors": true, "Summary.ec2Calls": true, "PodInterface.differences": true,
	"NodeIPAM.enis": true, "PodReport.interfaces": true, "PodReport.failures": true, "PodReport.blocked": true,
	"BranchInterface.securityGroups": true,
}

// TestSchemas_AreThoseOfTheTypes: each member of each document, with its type,
// whether it may be null, and what its comment says.
func TestSchemas_AreThoseOfTheTypes(t *testing.T) {
	t.Parallel()
	g := generator{comments: fieldComments(t)}
	var kinds []string
	for _, ref := range Schemas().Items {
		kinds = append(kinds, ref.Kind)
	}
	if !slices.IsSorted(kinds) || len(kinds) != len(documents) {
		t.Errorf("kinds %v", kinds)
	}
	for kind, doc := range documents {
		got := g.document(kind, reflect.TypeOf(doc))
		golden.File(t, filepath.Join("schema", kind+".json"), got)
		if want, ok := Schema(kind); !golden.Update() && (!ok || !bytes.Equal(got, want)) {
			t.Errorf("schema %s is another than its file", kind)
		}
	}
	for _, problem := range g.problems {
		t.Error(problem)
	}
	if _, ok := Schema("../schema_test.go"); ok {
		t.Error("a schema that is none")
	}
	files, err := filepath.Glob("schema/*.json")
	if err != nil || len(files) != len(documents) {
		t.Errorf("%d files for %d documents, %v", len(files), len(documents), err)
	}
}

// generator makes a schema of a Go type.
type generator struct {
	comments map[string]string // by "Type" and "Type.Field"
	problems []string
	defs     map[string]any // by type name
	cli      bool           // the document is one of cnictl, as package document writes it
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

func (g *generator) document(kind string, t reflect.Type) []byte {
	g.defs = map[string]any{}
	root := g.object(t, kind)
	head := ordered{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"$id", "urn:" + strings.ReplaceAll(APIVersion, "/", ":") + ":" + kind},
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
		g.problems = append(g.problems, err.Error())
	}
	return out.Bytes()
}

// object is the schema of a struct; of a document the first two members are fixed.
func (g *generator) object(t reflect.Type, kind string) ordered {
	var properties ordered
	required := []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous { // its members stand among the others
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
		schema := g.value(f.Type, at, g.mayLack(f))
		comment := g.comments[t.Name()+"."+f.Name]
		if g.mayLack(f) {
			comment = sayNull.Replace(comment)
		}
		if comment == "" || name == "" {
			g.problems = append(g.problems, fmt.Sprintf("%s.%s has no comment or no JSON name", t.Name(), f.Name))
		}
		schema = append(schema, member{"description", comment})
		if kind != "" && name == "apiVersion" {
			schema = append(schema, member{"const", APIVersion})
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
		{"description", g.comments[t.Name()]},
		{"properties", properties},
		{"required", required},
	}
}

// mayLack reports that a member is null where an answer of a daemon has a value that stands
// for what is not known.
func (g *generator) mayLack(f reflect.StructField) bool {
	if !g.cli || f.Tag.Get("null") == "never" {
		return false
	}
	switch f.Type {
	case reflect.TypeFor[netip.Addr](), reflect.TypeFor[netip.Prefix]():
		return true
	}
	return f.Type.Kind() == reflect.String || f.Tag.Get("null") == "zero"
}

// sayNull makes of a comment on a member that one on the member that is null instead.
var sayNull = strings.NewReplacer("empty", "null", `""`, "null", "0 = unknown", "null = unknown", "0: not reported", "null: not reported")

func (g *generator) value(t reflect.Type, at string, null bool) ordered {
	null = null || nullable[at]
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
			g.defs[t.Name()] = true // a type that holds itself would end here
			g.defs[t.Name()] = g.object(t, "")
		}
		ref := ordered{{"$ref", "#/$defs/" + t.Name()}}
		if null {
			return ordered{{"anyOf", []any{ref, ordered{{"type", "null"}}}}}
		}
		return ref
	}
	g.problems = append(g.problems, fmt.Sprintf("%s: no schema for %s", at, t))
	return nil
}

// fieldComments reads the comments of types and members from the source.
func fieldComments(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
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

// examples are documents as a daemon answers them: those of docs/introspection.md.
func examples(t *testing.T) map[string][]byte {
	t.Helper()
	page, err := os.ReadFile("../../../docs/introspection.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for i, part := range strings.Split(string(page), "<!-- example:") {
		if i == 0 {
			continue
		}
		name, rest, _ := strings.Cut(part, " -->\n```json\n")
		body, _, ok := strings.Cut(rest, "\n```\n<!-- end -->")
		if !ok {
			t.Fatalf("example %.20q has no end", name)
		}
		out[name] = []byte(body)
	}
	return out
}

// TestSchemas_Examples holds every example of the page to its schema, and wants one
// of each document.
func TestSchemas_Examples(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for name, body := range examples(t) {
		var head struct{ Kind string }
		if err := json.Unmarshal(body, &head); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		seen[head.Kind] = true
		for _, problem := range validate(t, head.Kind, body) {
			t.Errorf("example %s: %s", name, problem)
		}
	}
	for kind := range documents {
		if !seen[kind] {
			t.Errorf("docs/introspection.md has no example of %s", kind)
		}
	}
}

// validate holds a document to its schema.
func validate(t *testing.T, kind string, body []byte) []string {
	t.Helper()
	raw, ok := Schema(kind)
	if !ok {
		return []string{"no schema of kind " + kind}
	}
	return validateBy(t, raw, body)
}

func validateBy(t *testing.T, raw json.RawMessage, body []byte) []string {
	t.Helper()
	return validateAs(t, validator{}, raw, body)
}

func validateAs(t *testing.T, v validator, raw json.RawMessage, body []byte) []string {
	t.Helper()
	var schema map[string]any
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	v.root = schema
	var doc any
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err := dec.Decode(&doc); err != nil {
		return []string{err.Error()}
	}
	v.check("", schema, doc)
	return v.problems
}

// validator knows the part of JSON Schema that the generator writes. It is stricter
// in one point: a member that the schema does not name is a problem.
type validator struct {
	root     map[string]any
	problems []string
	cli      bool // an empty text where null may stand is one too, and so is a part of a second
}

func (v *validator) refuse(at, format string, args ...any) {
	v.problems = append(v.problems, at+": "+fmt.Sprintf(format, args...))
}

func (v *validator) check(at string, schema map[string]any, doc any) {
	if ref, ok := schema["$ref"].(string); ok {
		target, found := v.root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		if !found {
			v.refuse(at, "%s leads nowhere", ref)
			return
		}
		v.check(at, target, doc)
		return
	}
	if either, ok := schema["anyOf"].([]any); ok {
		if doc != nil {
			v.check(at, either[0].(map[string]any), doc)
		}
		return
	}
	if want, ok := schema["const"]; ok && doc != want {
		v.refuse(at, "is %v, not %v", doc, want)
	}
	if !slices.Contains(types(schema["type"]), typeOf(doc)) {
		v.refuse(at, "is of type %s, not %v", typeOf(doc), schema["type"])
		return
	}
	v.parts(at, schema, doc)
}

func (v *validator) parts(at string, schema map[string]any, doc any) {
	switch doc := doc.(type) {
	case string:
		v.text(at, schema, doc)
	case json.Number:
		if n, err := doc.Int64(); err == nil && schema["minimum"] != nil && n < 0 {
			v.refuse(at, "%d is below the minimum", n)
		}
	case []any:
		for i, item := range doc {
			v.check(fmt.Sprintf("%s[%d]", at, i), schema["items"].(map[string]any), item)
		}
	case map[string]any:
		v.members(at, schema, doc)
	}
}

// codeWord is what a state is, that programs compare.
var codeWord = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// text holds a string to its schema. A declared setting may be set to nothing.
func (v *validator) text(at string, schema map[string]any, doc string) {
	if v.cli && doc == "" && slices.Contains(types(schema["type"]), "null") && !strings.HasSuffix(at, ".declared") {
		v.refuse(at, "is empty, and null is what is not known")
	}
	if v.cli && (strings.HasSuffix(at, ".state") || strings.HasSuffix(at, ".status")) && doc != "" && !codeWord.MatchString(doc) {
		v.refuse(at, "%q is prose, and no word for programs", doc)
	}
	if schema["format"] != "date-time" {
		return
	}
	when, err := time.Parse(time.RFC3339Nano, doc)
	switch {
	case err != nil || !strings.HasSuffix(doc, "Z"):
		v.refuse(at, "%q is no time in UTC", doc)
	case v.cli && when.Nanosecond() != 0:
		v.refuse(at, "%q is not in whole seconds", doc)
	}
}

func (v *validator) members(at string, schema, doc map[string]any) {
	properties, _ := schema["properties"].(map[string]any)
	for key, value := range doc {
		next, ok := properties[key].(map[string]any)
		if !ok {
			next, ok = schema["additionalProperties"].(map[string]any)
		}
		if !ok {
			v.refuse(at+"."+key, "is not in the schema")
			continue
		}
		v.check(at+"."+key, next, value)
	}
	required, _ := schema["required"].([]any)
	for _, key := range required {
		if _, ok := doc[key.(string)]; !ok {
			v.refuse(at+"."+key.(string), "is missing")
		}
	}
}

func types(v any) []string {
	if one, ok := v.(string); ok {
		v = []any{one}
	}
	var out []string
	for _, name := range v.([]any) {
		if out = append(out, name.(string)); name == "number" {
			out = append(out, "integer")
		}
	}
	return out
}

func typeOf(doc any) string {
	switch doc := doc.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "boolean"
	case []any:
		return "array"
	case json.Number:
		if _, err := doc.Int64(); err == nil {
			return "integer"
		}
		return "number"
	}
	return "object"
}

// TestValidator_Refuses: the test above is worth as much as its validator.
func TestValidator_Refuses(t *testing.T) {
	t.Parallel()
	good := string(examples(t)["config"])
	for what, change := range map[string][2]string{
		"other kind":      {`"NodeConfig"`, `"NodeSummary"`},
		"wrong type":      {`"declared": "5"`, `"declared": 5`},
		"null":            {`"effective": "5"`, `"effective": null`},
		"missing":         {`"source": "default",`, ``},
		"unknown":         {`"source": "default",`, `"source": "default", "more": 1,`},
		"list is no list": {`"items": [`, `"items": {}, "x": [`},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if bad == good {
			t.Fatalf("%s: nothing changed", what)
		}
		if len(validate(t, KindConfig, []byte(bad))) == 0 {
			t.Errorf("%s: accepted", what)
		}
	}
	if problems := validate(t, KindConfig, []byte(good)); len(problems) > 0 {
		t.Errorf("%v", problems)
	}
}
