package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// module is a tree with two packages, and tests that notice only a part of what is wrong.
var module = map[string]string{
	".gitignore": "/.cache/\n",
	"go.mod":     "module m\n\ngo 1.24\n",
	"sum/sum.go": `package sum

// Limit is a limit.
const Limit = 3

type Adder[T ~int] struct{ sum T }

func (a *Adder[T]) Add(n T) { // a comment, changed in place
	if n >
		Limit {
		return
	}
	a.sum += n
}

func Twice(n int) int { return n + n }

func Thrice(n int) int { return n + n + n }

func Text() string { return "a text" }
`,
	"sum/sum_other.go": "//go:build plan9\n\npackage sum\n\nfunc Twice(n int) int { return 2 * n }\n",
	"sum/sum_test.go": `package sum

import (
	"os"
	"testing"
	"m/golden"
)

func TestAdd(t *testing.T) {
	t.Run("limit", func(t *testing.T) {
		var a Adder[int]
		if a.Add(Limit + 1); a.sum != 0 {
			t.Error("added")
		}
	})
}

func TestTwice(t *testing.T) {
	if got := Twice(2); got != 4 {
		panic(got)
	}
}

func TestText(t *testing.T) { golden.Check(t, "a text", Text()) }

func TestBroken(t *testing.T) { t.Error("always") }

func TestData(t *testing.T) {
	if data, _ := os.ReadFile("../data/rows.yaml"); string(data) != "rows:\n  - one\n" {
		t.Errorf("%s", data)
	}
}
`,
	"golden/golden.go": `package golden

import "testing"

func Check(t *testing.T, want, got string) {
	if want != got {
		t.Error(got)
	}
}
`,
	"data/rows.yaml": "rows:\n  - one\n",
}

const goldenChange = "## golden files match\nin golden Check\n- if want != got {\n+ if want != got && got == want {\n"

func writeModule(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range module {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}} {
		git := exec.CommandContext(t.Context(), "git", args...)
		git.Dir = root
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args[0], err, out)
		}
	}
	return root
}

func mustParse(t *testing.T, text string) ([]mutant, mutant) {
	t.Helper()
	all, golden, err := parse([]byte(goldenChange + text))
	if err != nil {
		t.Fatal(err)
	}
	return all, golden
}

func TestApply(t *testing.T) {
	root := writeModule(t)
	for _, tt := range []struct{ name, text, want, fail string }{
		{"a method of a generic type, over two lines", "in sum Adder.Add\n- if n > Limit {\n+ if n >= Limit {", "\tif n >= Limit {\n\t\treturn", ""},
		{"several lines", "in sum Adder.Add\n- return\n- }\n- a.sum += n\n+ }", "Limit {\n\t\t}\n}", ""},
		{"removed", "in sum Adder.Add\n- a.sum += n", "\t}\n\t\n}", ""},
		{"a constant", "in sum Limit\n- Limit = 3\n+ Limit = 4", "const Limit = 4", ""},
		{"a type", "in sum Adder\n- ~int\n+ ~int | ~uint", "Adder[T ~int | ~uint]", ""},
		{"the file for this machine", "in sum Twice\n- n + n\n+ n * n", "{ return n * n }\n\nfunc Thrice", ""},
		{"a file that is not Go", "in data/rows.yaml\ntest sum\n- - one\n+ - two", "rows:\n  - two\n", ""},
		{"code of another function", "in sum Twice\n- n + n + n\n+ n", "", "0 times"},
		{"twice", "in sum Thrice\n- + n\n+ - n", "", "2 times"},
		{"no such function", "in sum Half\n- n\n+ m", "", "sum has no Half"},
		{"no such package", "in half Half\n- n\n+ m", "", "no such file"},
		{"no such file", "in half.yaml\ntest sum\n- n\n+ m", "", "no such file"},
	} {
		all, _ := mustParse(t, "## X "+tt.name+"\n"+tt.text)
		got, err := all[0].apply(root)
		if tt.fail != "" {
			if err == nil || !strings.Contains(err.Error(), tt.fail) {
				t.Errorf("%s: %v, want %q", tt.name, err, tt.fail)
			}
			continue
		}
		if err != nil || !strings.Contains(string(got.text), tt.want) {
			t.Errorf("%s: %v in\n%s\nwant %q", tt.name, err, got.text, tt.want)
		}
	}
}

// mutants of module, with what becomes of them and the tests that notice.
const mutantsText = `
## A the limit is too low
in sum Adder.Add
- if n > Limit {
+ if n > Limit+1 {
## B nobody looks
in sum Thrice
- n + n + n
+ n
## C one that panics
in sum Twice
- n + n
+ n + n + 1
## D only a golden file
in sum Text
- "a text"
+ "another"
## E a file that tests read
in data/rows.yaml
test sum
- - one
+ - two
## F it does not compile
in sum Twice
- n + n
+ n + m
## G code that went
in sum Quarter
- n / 4
+ n / 5
## H no such test
in sum Twice
run ^TestNone$
- n + n
+ n
`

func TestRun(t *testing.T) {
	root := writeModule(t)
	all, golden := mustParse(t, mutantsText)
	r := func(resume bool) (*runner, *bytes.Buffer) {
		s, err := openStore(t.Context(), root, resume)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.file.Close() })
		log := &bytes.Buffer{}
		return &runner{root: root, timeout: 10 * time.Minute, workers: 2, log: log, results: s}, log
	}
	first, log := r(false)
	results, problems, err := first.run(t.Context(), all, golden)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]struct{ status, by string }{
		"A": {killed, "sum: TestAdd"}, "B": {survived, ""}, "C": {killed, "sum: TestTwice"}, "D": {survived, ""}, "E": {killed, "sum: TestData"},
		"F": {notBuilt, ""}, "G": {notApplied, ""}, "H": {notRun, ""},
	}
	for _, got := range results {
		if w := want[got.ID]; got.Status != w.status || w.by != "" && got.by() != w.by || got.Status == notBuilt && !strings.Contains(got.Why, "undefined: m") {
			t.Errorf("%s, want %s %s", got, w.status, w.by)
		}
	}
	if len(problems) != 1 || !strings.Contains(problems[0], "TestBroken") {
		t.Errorf("problems %q, want the test that fails without a mutant", problems)
	}
	for name, text := range module {
		if now, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(now) != text {
			t.Errorf("%s has changed: %v\n%s", name, err, now)
		}
	}
	if left, err := filepath.Glob(filepath.Join(root, ".cache/mutants/trees-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	if n := strings.Count(log.String(), "\n"); n != 2+len(all) {
		t.Errorf("%d lines:\n%s", n, log)
	}

	// A run that goes on repeats what it does not know to be killed.
	again, log := r(true)
	if results, _, err = again.run(t.Context(), all, golden); err != nil || strings.Contains(log.String(), " A killed") || !strings.Contains(log.String(), " B SURVIVED") || results[0].by() != "sum: TestAdd" {
		t.Errorf("%v, %s\n%s", err, results[0], log)
	}

	var text, markdown, doc bytes.Buffer
	for format, w := range map[string]io.Writer{"text": &text, "markdown": &markdown, "json": &doc} {
		if err := write(w, results, format); err != nil {
			t.Error(err)
		}
	}
	if !strings.Contains(text.String(), "3 of 8 mutants killed") || !strings.Contains(markdown.String(), "| A | sum Adder.Add | the limit is too low | killed | sum: TestAdd |") {
		t.Errorf("%s\n%s", &text, &markdown)
	}
	var rows []result
	if err := json.Unmarshal(doc.Bytes(), &rows); err != nil || !slices.Equal(rows[0].Killers["sum"], []string{"TestAdd"}) {
		t.Errorf("%v\n%s", err, &doc)
	}
}

func TestCheck(t *testing.T) {
	root := writeModule(t)
	all, golden := mustParse(t, mutantsText)
	problems, err := check(t.Context(), root, append(all, golden))
	if err != nil || len(problems) != 2 || !strings.Contains(problems[0], "G does not apply: sum has no Quarter") || !strings.Contains(problems[1], "F does not compile: sum/sum.go:16:36: undefined: m") {
		t.Errorf("%v %q", err, problems)
	}
}

func TestParse_Refuses(t *testing.T) {
	good := "## A what\nin sum Twice\n- n + n\n+ n\n"
	for text, want := range map[string]string{
		good + good:                                       "A is there twice",
		strings.ReplaceAll(good, "- ", "* "):              "is none of",
		strings.ReplaceAll(good, "- n + n", ""):           `starts with "-"`,
		strings.TrimSuffix(good, "+ n\n") + "+ n  +  n\n": "changes nothing",
		strings.ReplaceAll(good, " Twice", ""):            "which function?",
		strings.ReplaceAll(good, "sum Twice", "a/b.yaml"): `needs a line "test"`,
		strings.ReplaceAll(good, " what", ""):             "it needs a text",
	} {
		if _, _, err := parse([]byte(goldenChange + text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, _, err := parse([]byte("in sum Twice\n" + good)); err == nil || !strings.Contains(err.Error(), "before the first mutant") {
		t.Error(err)
	}
	if _, _, err := parse([]byte(good)); err == nil || !strings.Contains(err.Error(), "golden") {
		t.Error(err)
	}
}

func TestEnough(t *testing.T) {
	var all []mutant
	for range fewest {
		all = append(all, mutant{Place: "daemon/ipam"})
	}
	for i, area := range areas {
		for j := range fewestIn {
			all[i*fewestIn+j].Place = area + "/x"
		}
	}
	if problems := enough(all); len(problems) > 0 {
		t.Errorf("%q", problems)
	}
	if problems := enough(all[1:]); len(problems) != 2 { // 63, and three in the fleet
		t.Errorf("%q", problems)
	}
	if problems := enough(nil); len(problems) != 1+len(areas) {
		t.Errorf("%q", problems)
	}
}

// TestStore_Untracked: results hold for the contents of files that git does not track, too.
func TestStore_Untracked(t *testing.T) {
	root := writeModule(t)
	file := filepath.Join(root, "sum", "new file.go")
	var names []string
	for _, text := range []string{"package sum\n", "package sum // changed\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := openStore(t.Context(), root, false)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, s.file.Name())
		if err := s.file.Close(); err != nil {
			t.Error(err)
		}
	}
	if names[0] == names[1] {
		t.Errorf("the same results, %s, for two contents of an untracked file", names[0])
	}
}
