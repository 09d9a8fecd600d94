package config

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
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
// directions, and the list with the specifications if CNI_SPEC_DIR names their directory.
func TestTable_IsUpstreams(t *testing.T) {
	if dir := os.Getenv("CNI_SPEC_DIR"); dir != "" {
		t.Run("specifications", func(t *testing.T) { compareWithTexts(t, dir) })
	}
	want := readSpecified(t)
	for _, r := range table {
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

// looksLikeVariable matches capitals with an underscore; some names end in IPv4 or IPv6.
var looksLikeVariable = regexp.MustCompile(`\b[A-Z][A-Z0-9]*(?:_[A-Za-z0-9]+)+\b`)

// compareWithTexts looks for names and defaults in the specifications that the list lacks.
func compareWithTexts(t *testing.T, dir string) {
	t.Helper()
	texts := map[string]string{}
	files, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no specification in %s: %v", dir, err)
	}
	found := map[string]string{} // name to the text that mentions it
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(f)] = string(text)
		for _, name := range looksLikeVariable.FindAll(text, -1) {
			found[string(name)] = filepath.Base(f)
		}
	}
	listed, others := readSpecified(t), readTSV(t, "not-variables.tsv", 2)
	for _, name := range slices.Sorted(maps.Keys(found)) {
		_, variable := listed[name]
		if _, other := others[name]; variable == other {
			t.Errorf("%s (%s): listed as a variable: %v; as none: %v", name, found[name], variable, other)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(others)) {
		if found[name] == "" {
			t.Errorf("%s is in not-variables.tsv, but in no text", name)
		}
	}
	checkTable(t, listed, section(texts["ipamd.md"], "## 12. Environment variables"))
	checkTable(t, listed, section(texts["plugin.md"], "## 9. Environment variables"))
}

func section(text, heading string) string {
	_, rest, _ := strings.Cut(text, "\n"+heading+"\n")
	body, _, _ := strings.Cut(rest, "\n## ")
	return body
}

// inWords are table cells that give a default by reference.
var inWords = []string{"§11", "§8.2", "AWS_VPC_ENI_MTU", "from downward API"}

// checkTable compares the first two columns of a table: variables and defaults.
func checkTable(t *testing.T, listed map[string]specified, table string) {
	t.Helper()
	rows := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		names := looksLikeVariable.FindAllString(cells[1], -1)
		def := defaultIn(cells[2])
		for _, name := range names {
			rows++
			switch s, ok := listed[name]; {
			case !ok:
				t.Errorf("%s is not listed", name)
			case s.def != def && !slices.Contains(inWords, def):
				t.Errorf("%s: listed default %q, the table says %q", name, s.def, def)
			}
		}
	}
	if rows < 30 {
		t.Errorf("a table of %d variables: was it moved?", rows)
	}
}

// defaultIn reduces a cell to its value, without markup, the manifest's value and remarks.
func defaultIn(cell string) string {
	cell = strings.TrimSpace(strings.NewReplacer("**", "", "`", "").Replace(cell))
	for _, end := range []string{" (M ", " = ", "; manifest", " in code", " for the check"} {
		cell, _, _ = strings.Cut(cell, end)
	}
	switch cell {
	case "unset", "empty", "absent", "–":
		return ""
	}
	return cell
}
