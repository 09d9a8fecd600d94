package deploy_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"cnictl/daemon/config"
	"cnictl/testenv/text/golden"
)

// charts are the directories of the charts, and the readers of each chart's environment.
var charts = map[string][]config.Reader{
	"chart/aws-vpc-cni":        {config.Entrypoint, config.Agent, config.SDK, config.ClientGo},
	"chart/cni-metrics-helper": {config.Helper},
}

// schema has the fields of values.schema.json that the tests read.
type schema struct {
	Description string
	Const       any
	Properties  map[string]*schema
}

// value is one line of a chart's values.
type value struct{ name, def, meaning string }

// values lists the values of values.yaml with the schema's descriptions, in file order.
func values(t *testing.T, at string, node *yaml.Node, s *schema) (out []value) {
	t.Helper()
	for i := 0; i < len(node.Content); i += 2 {
		key, def := node.Content[i].Value, node.Content[i+1]
		name := strings.TrimPrefix(at+"."+key, ".")
		property := s.Properties[key]
		switch {
		case property == nil:
			t.Errorf("%s is not in the schema", name)
		case property.Properties != nil:
			out = append(out, values(t, name, def, property)...)
		case property.Description == "":
			t.Errorf("the schema does not describe %s", name)
		default:
			out = append(out, value{name, defaultOf(t, def), property.Description})
		}
	}
	return out
}

// defaultOf formats a default on one line if it fits.
func defaultOf(t *testing.T, node *yaml.Node) string {
	t.Helper()
	var v any
	if err := node.Decode(&v); err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if len(line) > 60 {
		return "see values.yaml"
	}
	return "`" + string(line) + "`"
}

func read[T any](t *testing.T, file string, decode func([]byte, any) error) *T {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := new(T)
	if err := decode(data, out); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return out
}

// TestChart_Digest: each chart's values and schema contain the digest of its defaults, so that the
// chart refuses the defaults of another version.
func TestChart_Digest(t *testing.T) {
	const name = "defaultsDigest"
	for dir := range charts {
		values := *read[map[string]any](t, filepath.Join(dir, "values.yaml"), yaml.Unmarshal)
		delete(values, name)
		text, err := json.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		digest := fmt.Sprintf("%x", sha256.Sum256(text))[:12]
		for file, place := range map[string]string{"values.yaml": `\n` + name + `: "()`, "values.schema.json": `"` + name + `": \{\s+"const": "()`} {
			file = filepath.Join(dir, file)
			have, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			written := regexp.MustCompile(strings.Replace(place, "()", "([^\"]*)", 1)).FindSubmatchIndex(have)
			if written == nil {
				t.Fatalf("%s has no place for %s", file, name)
			}
			golden.File(t, file, slices.Concat(have[:written[2]], []byte(digest), have[written[3]:]))
		}
	}
}

// TestChart_Readme: README.md lists every value with the default of values.yaml and the
// description of the schema, and the variables of daemon/config.
func TestChart_Readme(t *testing.T) {
	for dir, readers := range charts {
		doc := read[yaml.Node](t, filepath.Join(dir, "values.yaml"), yaml.Unmarshal)
		root := read[schema](t, filepath.Join(dir, "values.schema.json"), json.Unmarshal)
		all := values(t, "", doc.Content[0], root)
		for name, property := range root.Properties {
			listed := slices.ContainsFunc(all, func(v value) bool { return v.name == name || strings.HasPrefix(v.name, name+".") })
			if !listed && property.Const == nil && property.Description != "" {
				t.Errorf("%s: %s has no default in values.yaml", dir, name)
			}
		}
		var b strings.Builder
		b.WriteString("\n## Values\n\n| value | default | meaning |\n| --- | --- | --- |\n")
		for _, v := range all {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", v.name, v.def, v.meaning)
		}
		env := *read[struct{ Env map[string]string }](t, filepath.Join(dir, "values.yaml"), yaml.Unmarshal)
		b.WriteString("\n## Environment\n\nThe variables of `env`, with the chart's default or, in parentheses, the program's.\n" +
			"[docs/configuration.md](../../../docs/configuration.md) says more about each.\n\n| variable | default | meaning |\n| --- | --- | --- |\n")
		for _, row := range config.Table() {
			if !slices.ContainsFunc(readers, row.ReadBy) || strings.HasPrefix(row.Manifest+row.Default, "(") {
				continue
			}
			def := "(" + cmp.Or(row.Default, "not set") + ")"
			if text, set := env.Env[row.Name]; set {
				def = "`" + cmp.Or(text, `""`) + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", row.Name, def, strings.ReplaceAll(row.Meaning, "|", `\|`))
		}
		splice(t, filepath.Join(dir, "README.md"), b.String())
	}
}

// splice compares the text between the markers of a page, or writes it if -update is set.
func splice(t *testing.T, page, text string) {
	t.Helper()
	const start, end = "<!-- generated by make generate: start -->\n", "<!-- generated by make generate: end -->"
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(have), start)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s lacks the markers of its generated part", page)
	}
	golden.File(t, page, []byte(before+start+text+"\n"+end+after))
}
