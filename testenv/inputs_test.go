package testenv

import (
	"os"
	"path/filepath"
	"testing"
)

// TestAddInputs checks what the go command is told about a package.
func TestAddInputs(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, "bin", "inputs")
	inputs := filepath.Join(dir, "plugin-vpc.txt")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(inputs, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	const own = "# test log\nopen testdata/x\n"
	told := "getenv CNI_TEST_INPUTS\nopen " + inputs + "\n"
	for _, row := range []struct{ name, log, dir, here, want string }{
		{"a package that starts programs", own, dir, "plugin/vpc", own + told},
		{"one whose tests ran in a guest", "", dir, "plugin/vpc", logMagic + told},
		{"one that starts nothing", own, dir, "plugin/netconf", own},
		{"plain go test", own, "", "plugin/vpc", ""},
	} {
		log := filepath.Join(t.TempDir(), "testlog.txt")
		if row.log != "" {
			if err := os.WriteFile(log, []byte(row.log), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := addInputs(log, row.dir, filepath.Join(root, row.here)); err != nil {
			t.Errorf("%s: %v", row.name, err)
		}
		if got, _ := os.ReadFile(log); string(got) != row.want {
			t.Errorf("%s: the log says %q, want %q", row.name, got, row.want)
		}
	}
}
