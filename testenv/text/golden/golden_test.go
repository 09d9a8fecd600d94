package golden

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a", "b.txt")
	if err := check(path, []byte("one\n"), false); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a file: %v, want ErrNotExist", err)
	}
	if err := check(path, []byte("one\n"), true); err != nil {
		t.Fatal(err)
	}
	if err := check(path, []byte("one\n"), false); err != nil {
		t.Errorf("equal: %v", err)
	}
	err := check(path, []byte("two\n"), false)
	var m *mismatch
	if !errors.As(err, &m) || !strings.Contains(err.Error(), "one") || !strings.Contains(err.Error(), "two") {
		t.Errorf("different: %v", err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "one\n" {
		t.Errorf("file after a comparison: %q, %v", data, err)
	}
}

func TestCheck_File(t *testing.T) {
	t.Parallel()
	Check(t, "greeting.txt", []byte("hello\n"))
}
