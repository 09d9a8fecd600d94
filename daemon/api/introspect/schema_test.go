package introspect

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"cnictl/testenv/text/golden"
	"cnictl/testenv/text/jsonschema"
)

// documents are the types that have a schema.
var documents = map[string]any{
	KindConfig: NodeConfig{}, KindEvents: NodeEvents{}, KindFailures: NodeFailures{}, KindFault: Fault{}, KindLogs: NodeLogs{},
	KindPlan: NodePlan{}, KindPod: NodePod{}, KindSummary: Summary{}, KindSchemas: SchemaList{},
	KindSubnetHistory: NodeSubnetHistory{},
}

// TestSchemas_AreThoseOfTheTypes: the schemas have each member of each document, with its
// type, its nullability and its comment.
func TestSchemas_AreThoseOfTheTypes(t *testing.T) {
	t.Parallel()
	g := jsonschema.Generator{Comments: jsonschema.FieldComments(t, "."), Version: APIVersion}
	var kinds []string
	for _, ref := range Schemas().Items {
		kinds = append(kinds, ref.Kind)
	}
	if !slices.IsSorted(kinds) || len(kinds) != len(documents) {
		t.Errorf("kinds %v", kinds)
	}
	for kind, doc := range documents {
		got := g.Document(kind, reflect.TypeOf(doc))
		golden.File(t, filepath.Join("schema", kind+".json"), got)
		if want, ok := Schema(kind); !golden.Update() && (!ok || !bytes.Equal(got, want)) {
			t.Errorf("schema %s is another than its file", kind)
		}
	}
	for _, problem := range g.Problems {
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

// examples returns a daemon's documents, from the examples in docs/introspection.md.
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

// TestSchemas_Examples validates every example of the page, and requires one of each
// document.
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

// validate checks a document against its schema.
func validate(t *testing.T, kind string, body []byte) []string {
	t.Helper()
	raw, ok := Schema(kind)
	if !ok {
		return []string{"no schema of kind " + kind}
	}
	return jsonschema.Problems(t, raw, body, jsonschema.Answered)
}

// TestValidator_Refuses: the tests above rely on the validator.
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
