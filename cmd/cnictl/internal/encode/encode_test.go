package encode

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

type doc struct {
	Kind  string         `json:"kind"`
	Items []any          `json:"items"`
	Map   map[string]any `json:"map"`
	None  []string       `json:"none"`
	Empty []string       `json:"empty"`
}

func sample() doc {
	return doc{
		Kind:  "NodeIPAM",
		Items: []any{map[string]any{"a": 1, "b": []any{"x", []any{1.5}}}, []any{}, map[string]any{}, nil, true, "no", "10", "a: b", "\x1b[2J\u202e\u0085"},
		Map:   map[string]any{"k": map[string]any{"deep": []any{map[string]any{"z": "y"}}}, "10.0.0.1/32": 281474976710656},
		Empty: []string{},
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	got, err := JSON(map[string]any{"a": "<\x1b\u202e\U000e0001é>", "n": []int{1}})
	if err != nil {
		t.Fatal(err)
	}
	want := "{\n    \"a\": \"<\\u001b\\u202e\\udb40\\udc01é>\",\n    \"n\": [\n        1\n    ]\n}\n"
	if string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestYAML(t *testing.T) {
	t.Parallel()
	got, err := YAML(sample())
	if err != nil {
		t.Fatal(err)
	}
	const want = `kind: NodeIPAM
items:
- a: 1
  b:
  - x
  - - 1.5
- []
- {}
- null
- true
- "no"
- "10"
- "a: b"
- "\u001b[2J\u202e\u0085"
map:
  "10.0.0.1/32": 281474976710656
  k:
    deep:
    - z: "y"
none: null
empty: []
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	sameValue(t, sample(), got)
}

func sameValue(t *testing.T, doc any, asYAML []byte) {
	t.Helper()
	want, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	got, err := yaml.YAMLToJSON(asYAML)
	if err != nil {
		t.Fatalf("%v in\n%s", err, asYAML)
	}
	var w, g any
	if err := json.Unmarshal(want, &w); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(got, &g); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w, g); diff != "" {
		t.Errorf("-want +got:\n%s\nin\n%s", diff, asYAML)
	}
}

func TestYAML_Recorded(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../../daemon/api/introspect/testdata/recorded/*/v1-enis.*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := YAML(json.RawMessage(b))
		if err != nil {
			t.Fatal(err)
		}
		sameValue(t, json.RawMessage(b), got)
	}
}

func FuzzYAML(f *testing.F) {
	for _, s := range []string{`{"a":[1,{"b":"c"}]}`, `[[[]]]`, `"- x"`, `{"":""}`, `[{"a":[{}]}]`, `"\u202e"`, `{"k":"y"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var v any
		if json.Unmarshal([]byte(s), &v) != nil {
			return
		}
		got, err := YAML(json.RawMessage(s))
		if err != nil {
			return // the raw text may contain what the encoder refuses
		}
		for _, r := range string(got) {
			if r != '\n' && !strconv.IsPrint(r) {
				t.Fatalf("%U in %q", r, got)
			}
		}
		if again, err := YAML(json.RawMessage(s)); err != nil || string(again) != string(got) {
			t.Fatal("not the same twice")
		}
	})
}
