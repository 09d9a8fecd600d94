// Package golden compares output with files that `go test -update` rewrites: golden files
// under testdata, and documentation generated from the code. Golden files are reviewed like
// code: they must not contain clocks, ports, random ids or map order.
package golden

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	_ "github.com/charmbracelet/x/exp/golden" // defines -update for all tests: teatest imports it anyway
	"github.com/google/go-cmp/cmp"
)

// Update reports whether to rewrite files.
func Update() bool { return flag.Lookup("update").Value.String() == "true" }

// Check compares got with testdata/<test name>/<name> and fails the test with the
// difference. With -update it writes the file instead.
func Check(t testing.TB, name string, got []byte) {
	t.Helper()
	File(t, filepath.Join("testdata", filepath.FromSlash(t.Name()), name), got)
}

// File is Check for a file at any path.
func File(t testing.TB, path string, got []byte) {
	t.Helper()
	if err := check(path, got, Update()); err != nil {
		t.Error(err)
	}
}

// mismatch reports that got differs from the file.
type mismatch struct{ path, diff string }

func (e *mismatch) Error() string {
	return e.path + " differs (-want +got; if it is right: go test -update):\n" + e.diff
}

func check(path string, got []byte, update bool) error {
	if update {
		return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		return &mismatch{path, diff}
	}
	return nil
}
