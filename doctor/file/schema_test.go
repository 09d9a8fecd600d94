package file

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"cnictl/testenv/text/golden"
)

const published = "../../docs/evidence.schema.json"

// everySituation is set at night.
var everySituation bool

// TestSchema: the published schema matches the types. It accepts the situations of the tests,
// both as written and as saved, and refuses unknown members.
func TestSchema(t *testing.T) {
	t.Parallel()
	text, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	golden.File(t, published, text)
	content, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("evidence.json", content); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("evidence.json")
	if err != nil {
		t.Fatal(err)
	}
	validate := func(text []byte) error {
		var value any
		if err := yaml.Unmarshal(text, &value); err != nil {
			return err
		}
		b, err := json.Marshal(value)
		if err != nil {
			return err
		}
		if value, err = jsonschema.UnmarshalJSON(bytes.NewReader(b)); err != nil {
			return err
		}
		return schema.Validate(value)
	}
	paths, err := filepath.Glob("../causes/testdata/*/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatal("no situations", err)
	}
	for _, path := range paths {
		if !everySituation && strings.ContainsAny(strings.TrimSuffix(filepath.Base(path), ".yaml"), "@.") {
			continue // one for each code is enough
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(text); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		ev, err := Load(text)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		saved, err := Save(ev)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(saved); err != nil {
			t.Errorf("%s, saved: %v", path, err)
		}
	}
	for _, text := range []string{"at: 2026-11-21T14:02:11Z", "schemaVersion: 1\nat: 2026-11-21T14:02:11Z\nworlds: {}", "schemaVersion: 1\nat: 2026-11-21T14:02:11Z\nsources: {kern.rule: [{prio: 1}]}", "schemaVersion: 1\nat: 2026-11-21T14:02:11Z\nmode: moon"} {
		if validate([]byte(text)) == nil {
			t.Errorf("accepts %q", text)
		}
	}
}
