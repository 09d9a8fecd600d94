package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writeModule writes a module with a pure package, a gated test and a fuzz target.
func writeModule(t *testing.T, gatedBody string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":             "module m\n\ngo 1.26\n",
		"a/a.go":             "// Package a.\npackage a\n",
		"a/a_test.go":        "package a\n\nimport \"testing\"\n\nfunc TestPure(t *testing.T) {}\n\nfunc FuzzA(f *testing.F) { f.Fuzz(func(t *testing.T, b []byte) {}) }\n",
		"b/b.go":             "// Package b.\npackage b\n",
		"b/b_kernel_test.go": "package b\n\nimport \"testing\"\n\nfunc TestKernel(t *testing.T) { " + gatedBody + " }\n",
		"testenv/doc.go":     "// Package testenv.\npackage testenv\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRun(t *testing.T) {
	t.Parallel()
	dir := writeModule(t, "")
	o := options{root: dir, layers: []string{"pure", "adapter"}, count: 1, strict: true}
	if err := run(t.Context(), o); err != nil {
		t.Errorf("all tests run: %v", err)
	}
	idle := writeModule(t, "")
	if err := os.WriteFile(filepath.Join(idle, "b/main_test.go"), []byte("package b\n\nimport \"testing\"\n\nfunc TestMain(m *testing.M) {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	o.root = idle
	if err := run(t.Context(), o); !errors.Is(err, errFailed) {
		t.Errorf("a package whose TestMain runs no test: %v, want %v", err, errFailed)
	}
	short := writeModule(t, `t.Skip("skip: -short: takes minutes")`)
	o.root = short
	if err := run(t.Context(), o); !errors.Is(err, errFailed) {
		t.Errorf("a skip because of -short in a layer that runs without it: %v, want %v", err, errFailed)
	}
	skips := writeModule(t, `t.Skip("no kernel")`)
	o.root = skips
	if err := run(t.Context(), o); !errors.Is(err, errFailed) {
		t.Errorf("a test that is skipped: %v, want %v", err, errFailed)
	}
	o.strict = false
	if err := run(t.Context(), o); err != nil {
		t.Errorf("the same where it may be skipped: %v", err)
	}
	o.run = "TestPure"
	if err := run(t.Context(), o); err != nil {
		t.Errorf("a selection of tests: %v", err)
	}
	o.run = "TestNothing"
	if err := run(t.Context(), o); err == nil || !strings.Contains(err.Error(), `-run "TestNothing" matches no test`) {
		t.Errorf("a selection of nothing: %v", err)
	}
	if err := run(t.Context(), options{root: skips, fuzz: time.Second, run: "FuzzNothing"}); err == nil || !strings.Contains(err.Error(), `-run "FuzzNothing" matches no fuzz target`) {
		t.Errorf("a selection of no fuzz target: %v", err)
	}
}

func TestMatched(t *testing.T) {
	t.Parallel()
	one := []layerResult{{passed: 1, status: map[testID]string{{"m/a", "TestA"}: "pass"}}}
	sub := []layerResult{{passed: 2, status: map[testID]string{{"m/a", "TestA"}: "pass", {"m/a", "TestA/x"}: "pass"}}}
	for _, row := range []struct {
		name, selection string
		results         []layerResult
		ok              bool
	}{
		{"everything, of nothing", "", []layerResult{{note: noPackages}}, true},
		{"a test", "TestA", one, true},
		{"no test", "TestB", []layerResult{{}, {note: noPackages}}, false},
		{"a layer that could not run", "TestB", []layerResult{{}, {note: "not run: no compiler"}}, true},
		{"a subtest", "TestA/x", sub, true},
		{"no subtest", "TestA/y", one, false},
		{"a test that skips before its subtests", "TestA/x", []layerResult{{skipped: 1}}, true},
	} {
		if err := matched(row.selection, row.results); (err == nil) != row.ok {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

func TestRun_Failure(t *testing.T) {
	t.Parallel()
	o := options{root: writeModule(t, `t.Error("wrong")`), layers: []string{"adapter"}, count: 1, run: "TestKernel"}
	if err := run(t.Context(), o); !errors.Is(err, errFailed) {
		t.Errorf("error %v, want %v", err, errFailed)
	}
	o.layers = []string{"quick"}
	if err := run(t.Context(), o); err == nil || errors.Is(err, errFailed) {
		t.Errorf("unknown layer: %v", err)
	}
}
