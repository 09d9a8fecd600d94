package cluster

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestControllers: the machine's groups get only the controllers that kubelet needs, and lose
// only those that they did not have before.
func TestControllers(t *testing.T) {
	t.Parallel()
	const all = "cpuset cpu io memory hugetlb pids rdma misc\n"
	for name, row := range map[string]struct {
		has, passes, now string
		pass, takeBack   []string
	}{
		"version 1":          {},
		"as systemd has it":  {all, "cpu memory pids\n", all, []string{"cpuset", "hugetlb"}, []string{"cpuset", "hugetlb"}},
		"nothing passed on":  {all, "", all, []string{"cpu", "cpuset", "hugetlb", "memory", "pids"}, []string{"cpu", "cpuset", "hugetlb", "memory", "pids"}},
		"all passed on":      {all, all, all, nil, nil},
		"a kernel with few":  {"cpu memory", "memory", "cpu memory", []string{"cpu"}, []string{"cpu"}},
		"taken back already": {all, "cpu memory pids", "cpu memory pids io", []string{"cpuset", "hugetlb"}, nil},
	} {
		pass := controllersToEnable(row.has, row.passes)
		if diff := cmp.Diff(row.pass, pass); diff != "" {
			t.Errorf("%s: passed on (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(row.takeBack, controllersToDisable(strings.Join(pass, " "), row.now)); diff != "" {
			t.Errorf("%s: taken back (-want +got):\n%s", name, diff)
		}
	}
	if got := controllersToDisable("io ../x +cpu", all); got != nil {
		t.Errorf("an invalid record: %v", got)
	}
}

// TestPass: only missing controllers are written, one at a time.
func TestPass(t *testing.T) {
	t.Parallel()
	group := t.TempDir()
	file := filepath.Join(group, passedOn)
	for _, row := range []struct{ has, passes, left string }{
		{"cpu io memory", "cpu memory", "cpu memory"}, // untouched
		{"cpu io memory", "memory", "+cpu"},
	} {
		for name, text := range map[string]string{"cgroup.controllers": row.has, passedOn: row.passes} {
			if err := os.WriteFile(filepath.Join(group, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := pass(group, missingControllers(group)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != row.left {
			t.Errorf("%+v: %q, %v", row, got, err)
		}
	}
	if inUse, err := takeBack(group, "memory"); inUse || err != nil { // "+cpu" is no controller
		t.Error(inUse, err)
	}
	if err := pass(filepath.Join(group, "none"), []string{"cpu"}); err == nil || !strings.Contains(err.Error(), "controller cpu") {
		t.Errorf("refused: %v", err)
	}
}

// TestSweep_Planted: in a world-writable directory, anything that is not one of our locks
// is not followed, opened or removed.
func TestSweep_Planted(t *testing.T) {
	t.Parallel()
	target := filepath.Join(t.TempDir(), "target")
	for what, plant := range map[string]func(path string) error{
		"a link to nothing": func(path string) error { return os.Symlink(target, path) },
		"a link to a file": func(path string) error {
			if err := os.WriteFile(target+"-there", []byte("cpu"), 0o600); err != nil {
				return err
			}
			return os.Symlink(target+"-there", path)
		},
		"another name of a file": func(path string) error { return os.Link(own(t), path) },
		"a directory":            func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		name := strings.ToLower(rand.Text()[:8])
		path := lockPath(name)
		if err := plant(path); err != nil {
			t.Fatal(err)
		}
		if err := sweep(name); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if err := os.Remove(path); err != nil {
			t.Errorf("%s: it was touched: %v", what, err)
		}
	}
	if _, err := os.Lstat(target); err == nil {
		t.Error("a link was followed")
	}
}

// own creates a file of this user in the directory of the locks.
func own(t *testing.T) string {
	t.Helper()
	f, err := os.CreateTemp("/tmp", "sweep")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(f.Name()) })
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

// TestSweep_Left: the lock of a killed cluster is removed.
func TestSweep_Left(t *testing.T) {
	t.Parallel()
	name := strings.ToLower(rand.Text()[:8])
	if err := os.WriteFile(lockPath(name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := sweep(name); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(lockPath(name)); !os.IsNotExist(err) {
		t.Errorf("it is there still: %v", err)
	}
}
