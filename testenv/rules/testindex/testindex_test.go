package testindex

import (
	"os"
	"path/filepath"
	"testing"
)

const source = `package p
func TestX(t *testing.T) {
	for _, row := range []struct{ name, value, want string }{
		{"first", "value", "message"}, {name: "named", value: "other"}, {value: "later", name: "last"},
	} {
		env := map[string]string{"VARIABLE": "value"}
		texts := []string{"loose", "texts"}
	}
	rows := map[string]row{"by key": {"inner", "text"}, "by call": make("argument"), "with/slash": {"a", "b"}}
	t.Run("direct", func(t *testing.T) { t.Log("logged") })
}
func TestMain(m *testing.M) {}
func (s suite) TestMethod(t *testing.T) {}
func helper(t *testing.T) { t.Run("elsewhere", nil) }
var slice, rows = []row{{"of a variable", "value"}}, map[string]row{"key of a variable": {}}
var unused = []row{{"of no test", "value"}}
func TestTables(t *testing.T) { run(t, slice, rows) }
`

// night adds to the tables of source.
const night = `//go:build nightly

package p
func init() {
	slice = append(slice, []row{{"appended", "value"}}...)
	maps.Copy(rows, map[string]row{"copied": {}})
	rows["set"] = row{"inner"}
	unused = append(unused, []row{{"added to no test", "value"}}...)
}
func TestNight(t *testing.T) { t.Run("direct", nil) }
`

// TestFind checks what the index finds, and what it must not mistake for a test or a row.
func TestFind(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, "some", "where")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"x_test.go": source, "x_nightly_test.go": night,
		"y_test.go": "package p_test\nfunc TestY(t *testing.T) {}\n",
		"z.go":      "package p\nfunc TestZ(t *testing.T) {}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	x := New(root)
	for _, name := range []string{
		"some/where TestX", "some/where TestY", "some/where TestX/first", "some/where TestX/named", "some/where TestX/last",
		"some/where TestX/by key", "some/where TestX/by call", "some/where TestX/with/slash", "some/where TestX/direct",
		"some/where TestTables/of a variable", "some/where TestTables/key of a variable", "some/where TestTables/appended", "some/where TestTables/copied", "some/where TestTables/set",
		"some/where TestNight", "some/where TestNight/direct",
	} {
		if err := x.Find(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, row := range []string{
		"value", "message", "other", "later", "VARIABLE", "loose", "texts", "inner", "text", "argument", "logged", "elsewhere", "none", "",
	} {
		if x.Find("some/where TestX/"+row) == nil {
			t.Errorf("%q was found as a subtest", row)
		}
	}
	for _, row := range []string{"value", "of no test", "added to no test", "first", "inner"} {
		if x.Find("some/where TestTables/"+row) == nil {
			t.Errorf("%q was found as a row of a table", row)
		}
	}
	for name, want := range map[string]bool{"TestX": true, "TestTables/appended": true, "TestNight": false, "TestNone": false} {
		if err := x.InGate("some/where " + name); (err == nil) != want {
			t.Errorf("in the gate: %s: %v", name, err)
		}
	}
	for _, name := range []string{
		"some/where TestZ", "some/where TestMain", "some/where TestMethod", "some/where TestY/first", "some/where Test",
		"some/where helper", "some TestX", "elsewhere TestX", "TestX", "some/where ", " TestX", "", "../x TestX",
	} {
		if x.Find(name) == nil {
			t.Errorf("%q was found as a test", name)
		}
	}
}

func TestFind_DamagedSource(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "x_test.go"), []byte("package p\nfunc TestX("), 0o600); err != nil {
		t.Fatal(err)
	}
	if New(root).Find(". TestX") == nil {
		t.Error("a file that cannot be parsed is passed over")
	}
}
