package rules_test

import (
	"os"
	"path/filepath"
	"testing"

	files "cnictl/testenv/text/golden"
)

// golden compares text with a testdata file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	files.File(t, filepath.Join("testdata", name), []byte(got))
}

func readFile(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
