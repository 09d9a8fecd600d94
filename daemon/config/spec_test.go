package config

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// specified is one of upstream's variables, a line of testdata/variables.tsv.
type specified struct {
	name, def, where string
	readers          []Reader
}

var readerLetters = map[rune]Reader{
	'A': Agent, 'E': Entrypoint, 'I': Init, 'P': Plugin, 'X': Egress, 'M': Helper, 'S': SDK, 'C': ClientGo,
}

// readTSV returns a list's lines, without comments, by their first field.
func readTSV(t *testing.T, file string, fields int) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != fields || out[f[0]] != nil {
			t.Fatalf("%s: %q: want %d fields and each name once", file, line, fields)
		}
		out[f[0]] = f
	}
	return out
}

func readSpecified(t *testing.T) map[string]specified {
	t.Helper()
	out := map[string]specified{}
	for name, f := range readTSV(t, "variables.tsv", 4) {
		s := specified{name: name, def: strings.TrimPrefix(f[1], "-"), where: f[3]}
		for _, letter := range strings.TrimPrefix(f[2], "-") {
			who, ok := readerLetters[letter]
			if !ok {
				t.Fatalf("%s: unknown reader %c", name, letter)
			}
			s.readers = append(s.readers, who)
		}
		slices.Sort(s.readers)
		out[name] = s
	}
	return out
}

// TestTable_IsUpstreams compares the table with the list of upstream's variables in both
// directions.
func TestTable_IsUpstreams(t *testing.T) {
	want := readSpecified(t)
	for _, r := range table() {
		s, ok := want[r.Name]
		if ours := r.Since == "ours"; ours == ok {
			t.Errorf("%s: ours: %v; specified for upstream: %v", r.Name, ours, ok)
		}
		if !ok {
			continue
		}
		delete(want, r.Name)
		if !sameDefault(r, s.def) {
			t.Errorf("%s: default %q, specified %q (%s)", r.Name, r.Default, s.def, s.where)
		}
		readers := slices.Sorted(slices.Values(r.Readers))
		if !slices.Equal(readers, s.readers) {
			t.Errorf("%s: read by %q, specified %q (%s)", r.Name, readers, s.readers, s.where)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		t.Errorf("%s (%s) has no row", name, want[name].where)
	}
}

// sameDefault ignores case where any case is accepted.
func sameDefault(r Row, specified string) bool {
	if strings.HasSuffix(r.Accepts(), "any case") {
		return strings.EqualFold(r.Default, specified)
	}
	return r.Default == specified
}
