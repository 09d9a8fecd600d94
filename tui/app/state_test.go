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
	want := saved{Version: stateVersion, Theme: "light", Wide: true}.sorted("prod", "overview", "-ip").sorted("staging", "overview", "node").sorted("prod", "pods", "-age")
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
	for _, x := range []struct{ cluster, screen, want string }{
		{"prod", "overview", "-ip"}, {"prod", "pods", "-age"}, {"staging", "overview", "node"}, {"staging", "pods", ""}, {"test", "overview", ""},
	} {
		if order := got.order(x.cluster, x.screen); order != x.want {
			t.Errorf("the order of %s of %s is %q, want %q", x.screen, x.cluster, order, x.want)
		}
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
		"nothing": "", "no JSON": "{", "another version": `{"version":9,"theme":"light"}`, "another shape": `{"version":2,"clusters":{}}`,
		"too long": `{"version":1,"theme":"` + strings.Repeat("x", maxState) + `"}`,
	} {
		if s := parseState([]byte(data)); s.Theme != "" || len(s.Clusters) != 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
	long := strings.Repeat("x", maxText+1)
	s := parseState([]byte(`{"version":2,"clusters":[{"name":"a","sort":{"overview":"` + long + `","pods":"node"}},{"name":"` + long + `"}]}`))
	if len(s.Clusters) != 1 || s.order("a", "overview") != "" || s.order("a", "pods") != "node" {
		t.Errorf("%+v", s)
	}
	// The order and filter of version 1, which had one each for all clusters, are dropped.
	s = parseState([]byte(`{"version":1,"theme":"light","wide":true,"screens":{"overview":{"sort":"-ip","filter":"type=m5.*"}}}`))
	if s.Theme != "light" || !s.Wide || len(s.Clusters) != 0 {
		t.Errorf("%+v", s)
	}
	if s := load(t.TempDir()); len(s.Clusters) != 0 {
		t.Error("a directory is a state file")
	}
	if err := (&keeper{path: "/dev/null/tui.json"}).save(1, saved{}); err == nil {
		t.Error("a file that cannot be written is no error")
	}
}

func FuzzState(f *testing.F) {
	for _, s := range []string{`{"version":2,"theme":"dark","wide":true,"clusters":[{"name":"prod","sort":{"overview":"-ip%"}}]}`, `{"version":2,"clusters":null}`, `[]`, `{"version":2,"clusters":[{}]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := parseState(data)
		for range 2 {
			if s.Version != stateVersion || len(s.Clusters) > maxClusters {
				t.Fatalf("%+v", s)
			}
			for _, c := range s.Clusters {
				if len(c.Name) > maxText || len(c.Sort) > maxScreens {
					t.Fatalf("%q is not bounded", c.Name)
				}
				for screen, order := range c.Sort {
					if len(screen) > maxText || len(order) > maxText {
						t.Fatalf("%q is not bounded", screen)
					}
				}
			}
			if s = s.sorted("a", "overview", "node"); s.order("a", "overview") != "node" {
				t.Fatalf("%+v", s)
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
	got := string(csvTable([]string{"A", "B"}, [][]string{{"=1+1", "-"}, {"+1", "-1"}, {"@SUM(A1)", "1=1"}, {"a,b", `"q"`}}))
	if want := "A,B\n'=1+1,-\n'+1,'-1\n'@SUM(A1),1=1\n\"a,b\",\"\"\"q\"\"\"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
