package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cnictl/testenv/cmd/internal/figure"
)

func TestTable(t *testing.T) {
	t.Parallel()
	var tab table
	tab.add("one", "s", 3, 1, 2).against(figure.Of(10), scaleRealistic).bound = bound{figure.Of(0.5), "because"}
	tab.add("two", "", 9).none().bound = bound{figure.Of(1), "because"}
	tab.note("a note")
	var out bytes.Buffer
	tab.print(&out, baseline{Median: map[string]float64{"one": 4}})
	for _, want := range []string{"one", "1–3", "0.20", "0.50 [1]", "1 [1]", "MISSED", "[1] because.", "a note", "4     0.50"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table does not have %q:\n%s", want, out.String())
		}
	}
	if err := tab.missed(); err == nil || err.Error() != "two: 9, at most 0 is allowed" {
		t.Errorf("missed: %v", err)
	}
}

func TestBaseline(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "b.json")
	if b, err := readBaseline(options{baseline: path}); err != nil || b.of("x").Known {
		t.Errorf("no file: %+v, %v", b, err)
	}
	var tab table
	tab.add("x", "s", 1, 5, 2)
	tab.add("nothing", "s")
	if err := tab.baseline("a machine").write(path); err != nil {
		t.Fatal(err)
	}
	b, err := readBaseline(options{baseline: path})
	if err != nil || b.of("x") != figure.Of(2) || b.of("nothing").Known || b.Machine != "a machine" {
		t.Errorf("%+v, %v", b, err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readBaseline(options{baseline: path}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a damaged file: %v", err)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		args string
		says string
	}{
		{"--phases start,load --runs 5 --bin x", ""},
		{"--phases walk", "walk"},
		{"--runs 0", "1 to 20"},
		{"--write", "--baseline"},
		{"now", "now"},
	} {
		_, err := parse(strings.Fields(row.args))
		if row.says == "" && err != nil || row.says != "" && (err == nil || !strings.Contains(err.Error(), row.says)) {
			t.Errorf("%s: %v", row.args, err)
		}
	}
}
