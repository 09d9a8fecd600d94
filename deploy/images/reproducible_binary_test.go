package images_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReproducible: the same sources in another directory, built without a cache, produce the same
// bytes. tools/release proves the same for archives and packages.
func TestReproducible(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	const program = "./cmd/portmap" // the smallest
	command := func(dir string, env []string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), append([]string{"CGO_ENABLED=0", "GOFLAGS=-trimpath"}, env...)...)
		text, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, text)
		}
		return string(text)
	}
	elsewhere := t.TempDir()
	copyFile := func(file string) {
		t.Helper()
		to := filepath.Join(elsewhere, strings.TrimPrefix(file, root))
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	copyFile(filepath.Join(root, "go.mod"))
	copyFile(filepath.Join(root, "go.sum"))
	sources := command(root, nil, "list", "-deps", "-f", `{{if not .Standard}}{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{end}}`, program)
	for file := range strings.Lines(sources) {
		if file = strings.TrimSpace(file); strings.HasPrefix(file, root+"/") {
			copyFile(file)
		}
	}
	out := t.TempDir()
	for dir, env := range map[string][]string{root: nil, elsewhere: {"GOCACHE=" + filepath.Join(out, "cache")}} {
		command(dir, env, "build", "-buildvcs=false", "-tags", "grpcnotrace", "-ldflags", "-s -w -X main.version=v1", "-o", filepath.Join(out, filepath.Base(dir)), program)
	}
	here, err := os.ReadFile(filepath.Join(out, filepath.Base(root)))
	if err != nil {
		t.Fatal(err)
	}
	there, err := os.ReadFile(filepath.Join(out, filepath.Base(elsewhere)))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(here, there) {
		t.Error("the program is other bytes when it is built in another directory")
	}
}
