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
	want := saved{Version: stateVersion, Theme: "light", Wide: true}
	if err := k.save(2, want); err != nil {
		t.Fatal(err)
	}
	if err := k.save(1, saved{Version: stateVersion}); err != nil {
		t.Fatal(err)
	}
	got := load(path)
	if got.Theme != "light" || !got.Wide {
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
		"nothing": "", "no JSON": "{", "another version": `{"version":9,"theme":"light"}`, "another shape": `{"version":2,"theme":["light"]}`,
		"too long": `{"version":1,"theme":"` + strings.Repeat("x", maxState) + `"}`,
	} {
		if s := parseState([]byte(data)); s != (saved{Version: stateVersion}) {
			t.Errorf("%s: %+v", name, s)
		}
	}
	// Orders of earlier releases are dropped.
	for _, old := range []string{
		`{"version":1,"theme":"light","wide":true,"screens":{"overview":{"sort":"-ip","filter":"type=m5.*"}}}`,
		`{"version":2,"theme":"light","wide":true,"clusters":[{"name":"prod","sort":{"overview":"type"}}]}`,
	} {
		if s := parseState([]byte(old)); s != (saved{Version: stateVersion, Theme: "light", Wide: true}) {
			t.Errorf("%s: %+v", old, s)
		}
	}
	if s := load(t.TempDir()); s != (saved{Version: stateVersion}) {
		t.Error("a directory is a state file")
	}
	if err := (&keeper{path: "/dev/null/tui.json"}).save(1, saved{}); err == nil {
		t.Error("a file that cannot be written is no error")
	}
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
	got := string(csvTable([]string{"A", "B"}, [][]string{{"=1+1", "-"}, {"+1", "-1"}, {"@SUM(A1)", "1=1"}, {"a,b", `"q"`}}))
	if want := "A,B\n'=1+1,-\n'+1,'-1\n'@SUM(A1),1=1\n\"a,b\",\"\"\"q\"\"\"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
