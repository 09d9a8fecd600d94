package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStateIsKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cnictl", "tui.json")
	k := &keeper{path: path}
	want := saved{Version: stateVersion, Theme: "light", Wide: true, Screens: map[string]savedList{"overview": {Sort: "-ip", Filter: "type=m5.*"}}}
	if err := k.save(2, want); err != nil {
		t.Fatal(err)
	}
	if err := k.save(1, saved{Version: stateVersion}); err != nil {
		t.Fatal(err)
	}
	got := load(path)
	if got.Theme != "light" || !got.Wide || got.Screens["overview"] != want.Screens["overview"] {
		t.Errorf("%+v", got)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("%v %v", left, err)
	}
}

func TestStateOfAnyKindIsTaken(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{
		"nothing": "", "no JSON": "{", "another version": `{"version":9,"theme":"light"}`, "another shape": `{"version":1,"screens":[]}`,
		"too long": `{"version":1,"theme":"` + strings.Repeat("x", maxState) + `"}`,
	} {
		if s := parseState([]byte(data)); s.Theme != "" || s.Screens == nil || len(s.Screens) != 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if s := parseState([]byte(`{"version":1,"screens":{"a":{"filter":"` + strings.Repeat("x", maxText+1) + `"},"b":{"sort":"ip"}}}`)); len(s.Screens) != 1 {
		t.Errorf("%+v", s)
	}
	if s := load(t.TempDir()); len(s.Screens) != 0 {
		t.Error("a directory is a state file")
	}
	if err := (&keeper{path: "/dev/null/tui.json"}).save(1, saved{}); err == nil {
		t.Error("a file that cannot be written is no error")
	}
}

func FuzzState(f *testing.F) {
	for _, s := range []string{`{"version":1,"theme":"dark","wide":true,"screens":{"overview":{"sort":"-ip%","filter":"warm>2"}}}`, `{"version":1,"screens":null}`, `[]`, `{"version":1,"screens":{"":{}}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := parseState(data)
		if s.Version != stateVersion || s.Screens == nil || len(s.Screens) > maxScreens {
			t.Fatalf("%+v", s)
		}
		for name, l := range s.Screens {
			if len(name) > maxText || len(l.Sort) > maxText || len(l.Filter) > maxText {
				t.Fatalf("%q is not bounded", name)
			}
		}
	})
}

func TestExportNeverOverwrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := writeNew(dir, "a.csv", []byte("first")); err != nil {
		t.Fatal(err)
	}
	if _, err := writeNew(dir, "a.csv", []byte("second")); !os.IsExist(err) {
		t.Errorf("%v", err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "a.csv"))
	if err != nil || string(data) != "first" {
		t.Errorf("%q %v", data, err)
	}
}

func TestCSVRunsNothing(t *testing.T) {
	t.Parallel()
	got := string(csvTable([]string{"A", "B"}, [][]string{{"=1+1", "-"}, {"a,b", `"q"`}}))
	if want := "A,B\n'=1+1,-\n\"a,b\",\"\"\"q\"\"\"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
