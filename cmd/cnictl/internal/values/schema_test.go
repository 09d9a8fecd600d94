package values

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"cnictl/daemon/config"
	"cnictl/deploy/chart"
	"cnictl/testenv/text/tour"
)

func parse(t *testing.T, text []byte) *Schema {
	t.Helper()
	s, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestAddon: every known property of the managed add-on has the same name and place in the
// chart, and is among the configurationValues that deploy/chart renders. Its variables are
// settings.
func TestAddon(t *testing.T) {
	t.Parallel()
	addon, names := parse(t, chart.Addon()), parse(t, chart.Values()).Names()
	text, err := os.ReadFile(tour.Path(t, "deploy/chart/testdata/addon.json"))
	if err != nil {
		t.Fatal(err)
	}
	var every map[string]any
	if err := json.Unmarshal(text, &every); err != nil {
		t.Fatal(err)
	}
	held, strays := addon.Fit(every)
	if missing := addon.Missing(every); len(strays)+len(missing) > 0 || !reflect.DeepEqual(held, every) {
		t.Errorf("%q do not fit, %q is missing, and what fits is\n%v", strays, missing, held)
	}
	for _, row := range config.Table() {
		names = append(names, "env."+row.Name, "init.env."+row.Name)
	}
	for _, path := range addon.Names() {
		if !slices.Contains(names, path) && !strings.HasPrefix(path, "resources.") { // Kubernetes' own
			t.Errorf("%s is not in the chart", path)
		}
		at := any(every)
		for _, key := range strings.Split(path, ".") {
			all, _ := at.(map[string]any)
			value, ok := all[key]
			if !ok {
				t.Errorf("addon.json lacks %s", path)
			}
			at = value
		}
	}
}

// TestParse: what cannot be an add-on's schema is refused; a form that AWS may choose is
// accepted.
func TestParse(t *testing.T) {
	t.Parallel()
	for text, refused := range map[string]string{
		`{`:                           "unexpected end",
		`[]`:                          "cannot unmarshal",
		`{"env": {}}`:                 "no properties",
		`{"$ref": "#/definitions/a"}`: "no definition #/definitions/a",
		`{"$ref": "#/definitions/a", "definitions": {"a": {"$ref": "#/definitions/a"}}}`: "no properties",
		`{"properties": {"a": true, "b": null, "c": false}}`:                             "",
	} {
		if _, err := Parse([]byte(text)); (err == nil) != (refused == "") || err != nil && !strings.Contains(err.Error(), refused) {
			t.Errorf("%s: %v, want %q", text, err, refused)
		}
	}
}

func TestNear(t *testing.T) {
	t.Parallel()
	names := []string{"env", "env.MAX_ENI", "env.WARM_ENI_TARGET", "init", "init.env", "init.env.ENABLE_V6_EGRESS", "updateStrategy"}
	for path, want := range map[string]string{
		"evn":                       "env",
		"env.WARM_ENI_TRAGET":       "env.WARM_ENI_TARGET",
		"init.env.WARM_ENI_TARGET":  "env.WARM_ENI_TARGET",
		"env.ENABLE_V6_EGRESS":      "init.env.ENABLE_V6_EGRESS",
		"max_eni":                   "env.MAX_ENI",
		"VpcCni.properties.env":     "env init.env",
		"podDisruptionBudget":       "",
		"init.updateStrategy.type.": "",
	} {
		if got := strings.Join(Near(path, names), " "); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// FuzzFit: values that fit a schema fit it again, unchanged.
func FuzzFit(f *testing.F) {
	for _, values := range []string{
		`{"env": {"WARM_ENI_TARGET": 1, "X": "y", "MAX_ENI": null}, "init": {"env": {}}, "image": {"tag": "v1"}, "affinity": null}`,
		`{"eniConfig": {"subnets": {"a": {"id": "b", "c": 1}}}, "nodeAgent": {"image": {}}, "resources": {"limits": {"cpu": 1.5}}}`,
	} {
		f.Add(chart.Addon(), []byte(values))
		f.Add(chart.Values(), []byte(values))
	}
	f.Add([]byte(`{"$ref": "#/definitions/a", "definitions": {"a": {"properties": {"b": {"$ref": "#/definitions/a"}}, "additionalProperties": false}}}`), []byte(`{"b": {"b": {"c": 1}}}`))
	f.Fuzz(func(t *testing.T, schema, text []byte) {
		s, err := Parse(schema)
		var values map[string]any
		if err != nil || json.Unmarshal(text, &values) != nil {
			return
		}
		held, _ := s.Fit(values)
		again, strays := s.Fit(held)
		if len(strays) > 0 || !reflect.DeepEqual(held, again) {
			t.Errorf("%v fits, and then %v with %q", held, again, strays)
		}
	})
}
