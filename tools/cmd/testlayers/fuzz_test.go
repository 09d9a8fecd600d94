package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const fuzzedTest = `package a

import "testing"

func FuzzGood(f *testing.F) { f.Fuzz(func(t *testing.T, b []byte) {}) }

func FuzzBad(f *testing.F) {
	f.Add([]byte("ab"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if string(b) != "ab" && len(b) > 0 {
			t.Errorf("wrong: %q", b)
		}
	})
}

func FuzzSkipped(f *testing.F) { f.Skip("never") }
`

func TestRunFuzz(t *testing.T) {
	t.Parallel()
	dir := writeModule(t, "")
	if err := os.WriteFile(filepath.Join(dir, "a/a_test.go"), []byte(fuzzedTest), 0o644); err != nil {
		t.Fatal(err)
	}
	// Uses its full time, in which even a busy machine must try at least one input.
	o := options{root: dir, fuzz: 3 * time.Second, run: "Good"}
	if err := run(t.Context(), o); err != nil {
		t.Errorf("a target that holds: %v", err)
	}
	o.fuzz = time.Minute // the others end as soon as they fail
	for _, name := range []string{"Bad", "Skipped"} {
		o.run = name
		if err := run(t.Context(), o); !errors.Is(err, errFailed) {
			t.Errorf("Fuzz%s: %v, want %v", name, err, errFailed)
		}
	}
	if found, err := filepath.Glob(filepath.Join(dir, "a/testdata/fuzz/FuzzBad/*")); err != nil || len(found) != 1 {
		t.Errorf("inputs that fail: %v, %v", found, err)
	}
}

func TestReadFuzzOutput(t *testing.T) {
	t.Parallel()
	const progress = "fuzz: elapsed: 0s, gathering baseline coverage: 0/2 completed\n" +
		"fuzz: elapsed: 3s, execs: 60515 (20167/sec), new interesting: 17 (total: 25)\n" +
		"fuzz: elapsed: 5s, execs: 100000 (20316/sec), new interesting: 20 (total: 28)\n"
	exit := errors.New("exit status 1")
	for _, row := range []struct {
		name, output string
		err          error
		failed       bool
		execs        int
		crasher      string
	}{
		{"pass", progress + "PASS\n", nil, false, 100000, ""},
		{"crash", progress + "--- FAIL: FuzzX (5.01s)\n    --- FAIL: FuzzX (0.00s)\n        x_test.go:9: wrong\n    \n    Failing input written to testdata/fuzz/FuzzX/582528dd\n", exit, true, 100000, "testdata/fuzz/FuzzX/582528dd"},
		{"a seed fails", "fuzz: elapsed: 0s, gathering baseline coverage: 0/2 completed\n--- FAIL: FuzzX (0.02s)\n", exit, true, 0, ""},
		{"nothing tried", "PASS\n", nil, true, 0, ""},
		{"nothing new tried", "fuzz: elapsed: 0s, gathering baseline coverage: 0/9 completed\nfuzz: elapsed: 20s, gathering baseline coverage: 7/9 completed\nPASS\n", nil, false, 7, ""},
		{"time is up", progress + "--- FAIL: FuzzX (5.01s)\n    context deadline exceeded\nFAIL\n", exit, false, 100000, ""},
		{"the same words in a message", progress + "--- FAIL: FuzzX (5.01s)\n    context deadline exceeded\n    Failing input written to testdata/fuzz/FuzzX/1\nFAIL\n", exit, true, 100000, "testdata/fuzz/FuzzX/1"},
		{"time is up before anything", "--- FAIL: FuzzX (5.01s)\n    context deadline exceeded\nFAIL\n", exit, true, 0, ""},
	} {
		r := readFuzzOutput([]byte(row.output), row.err)
		if (r.err != nil) != row.failed || r.execs != row.execs || r.crasher != row.crasher {
			t.Errorf("%s: %+v", row.name, r)
		}
	}
	if r := readFuzzOutput([]byte(progress), nil); r.interesting != 20 || r.corpus != 28 || r.took != 5*time.Second || r.rate() != 20000 {
		t.Errorf("figures: %+v, %v/s", r, r.rate())
	}
}

func TestFuzzUnits(t *testing.T) {
	t.Parallel()
	pkgs := []pkg{
		{ImportPath: "m/b", Fuzz: []string{"FuzzB"}},
		{ImportPath: "m/a", Fuzz: []string{"FuzzA", "FuzzAA", "FuzzOther"}},
		{ImportPath: "m/c"},
	}
	got := fuzzUnits(pkgs, regexp.MustCompile("/a FuzzA|/b"))
	if len(got) != 2 || !slices.Equal(got[0].names, []string{"FuzzA", "FuzzAA"}) || got[1].pkg.ImportPath != "m/b" {
		t.Errorf("units %+v", got)
	}
}

func TestFuzzer_Report(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	f := &fuzzer{out: &out}
	f.report(pkg{ImportPath: "m/a", Rel: "a"}, "FuzzX", fuzzResult{execs: 10, took: 2 * time.Second, err: errors.New("exit status 1"),
		output: []byte("said\n"), crasher: "testdata/fuzz/FuzzX/01"})
	for _, want := range []string{"--- m/a FuzzX: exit status 1\nsaid\n", "input: a/testdata/fuzz/FuzzX/01\n", "again: go test -run='^FuzzX$/^01$' ./a\n", "FAIL m/a", " 5/s "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if f.ran != 1 || f.failed != 1 {
		t.Errorf("%d ran, %d failed", f.ran, f.failed)
	}
}
