package install_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/install"
)

func write(t *testing.T, path, text string, mode fs.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func inode(t *testing.T, path string) fs.FileInfo {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// TestProgram replaces any previous file, or keeps it.
func TestProgram(t *testing.T) {
	t.Parallel()
	const program = "#!/bin/sh\nexit 0\n"
	for name, row := range map[string]struct {
		before  func(t *testing.T, to string)
		changed bool
	}{
		"nothing":          {func(*testing.T, string) {}, true},
		"the same":         {func(t *testing.T, to string) { write(t, to, program, 0o755) }, false},
		"another mode":     {func(t *testing.T, to string) { write(t, to, program, 0o644) }, true},
		"another text":     {func(t *testing.T, to string) { write(t, to, strings.ToUpper(program), 0o755) }, true},
		"a longer text":    {func(t *testing.T, to string) { write(t, to, program+"#", 0o755) }, true},
		"a broken link":    {func(t *testing.T, to string) { symlink(t, "/nowhere", to) }, true},
		"a link to a file": {func(t *testing.T, to string) { symlink(t, write(t, to+"-beside", "beside", 0o600), to) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			from, to := write(t, filepath.Join(dir, "from"), program, 0o755), filepath.Join(dir, "plugin")
			row.before(t, to)
			for i, want := range []bool{row.changed, false} {
				if changed, err := install.Program(from, to); changed != want || err != nil {
					t.Errorf("run %d: changed %v, error %v", i+1, changed, err)
				}
			}
			if info := inode(t, to); read(t, to) != program || info.Mode() != 0o755 {
				t.Errorf("%q, mode %v", read(t, to), info.Mode())
			}
			if _, err := os.Stat(to + "-beside"); err == nil && read(t, to+"-beside") != "beside" {
				t.Error("what a link pointed to was written")
			}
		})
	}
}

func symlink(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

// TestProgram_Refused: every error names the target, and no files are left behind.
func TestProgram_Refused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from := write(t, filepath.Join(dir, "from"), "text", 0o755)
	for name, row := range map[string]struct{ from, to, says string }{
		"no directory":          {from, filepath.Join(dir, "none", "plugin"), "the directory must exist: mount the host's directory there"},
		"a directory":           {from, mkdir(t, filepath.Join(dir, "taken")), "a directory has that name; remove it"},
		"no source":             {filepath.Join(dir, "none"), filepath.Join(dir, "plugin"), "no such file"},
		"a directory as source": {dir, filepath.Join(dir, "plugin"), "is not a regular file"},
	} {
		changed, err := install.Program(row.from, row.to)
		if changed || err == nil || !strings.HasPrefix(err.Error(), "install "+row.to+": ") || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: changed %v, error %v", name, changed, err)
		}
	}
	if diff := cmp.Diff([]string{"from", "taken"}, names(t, dir)); diff != "" {
		t.Errorf("left behind (-want +got):\n%s", diff)
	}
}

func mkdir(t *testing.T, path string) string {
	t.Helper()
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestProgram_RemovesLeftovers removes temporary files of killed runs, upstream's too, but
// only those of this program.
func TestProgram_RemovesLeftovers(t *testing.T) {
	t.Parallel()
	dir, source := t.TempDir(), t.TempDir()
	for _, name := range []string{"plugin.tmp", "plugin.tmp123", "plugin.tmp.keep", "plugin.template", "other.tmp1", "xplugin.tmp"} {
		write(t, filepath.Join(dir, name), "", 0o600)
	}
	mkdir(t, filepath.Join(dir, "plugin.tmp7"))
	if _, err := install.Program(write(t, filepath.Join(source, "plugin"), "text", 0o755), filepath.Join(dir, "plugin")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"other.tmp1", "plugin", "plugin.template", "plugin.tmp.keep", "plugin.tmp7", "xplugin.tmp"}, names(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestProgram_ExecutableAtEveryInstant: runtimes may start a plugin at any moment, even
// during one of the 200 replacements here.
func TestProgram_ExecutableAtEveryInstant(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	binary := read(t, shell)
	versions := []string{
		write(t, filepath.Join(dir, "v1"), binary, 0o755),
		write(t, filepath.Join(dir, "v2"), binary+"\n", 0o755), // bytes after an ELF file are ignored
	}
	to := filepath.Join(dir, "plugin")
	if _, err := install.Program(versions[0], to); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var runs sync.WaitGroup
	for range 3 {
		runs.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					if n == 0 {
						t.Error("it was never started")
					}
					return
				default:
				}
				if out, err := exec.CommandContext(t.Context(), to, "-c", "exit 0").CombinedOutput(); err != nil {
					t.Errorf("start during a replacement: %v %s", err, out)
					return
				}
			}
		})
	}
	for i := range 200 {
		if changed, err := install.Program(versions[(i+1)%2], to); err != nil || !changed {
			t.Errorf("replacement %d: changed %v, error %v", i, changed, err)
			break
		}
	}
	close(done)
	runs.Wait()
	if diff := cmp.Diff([]string{"plugin", "v1", "v2"}, names(t, dir)); diff != "" {
		t.Errorf("left behind (-want +got):\n%s", diff)
	}
}

// TestPrograms copies only regular files, except those to be skipped.
func TestPrograms(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	write(t, filepath.Join(from, "LICENSE"), "text", 0o644)
	write(t, filepath.Join(from, "self"), "self", 0o755)
	write(t, filepath.Join(from, "portmap"), "plugin", 0o755)
	symlink(t, "portmap", filepath.Join(from, "link"))
	mkdir(t, filepath.Join(from, "more"))
	got, err := install.Programs(from, to, "self")
	if diff := cmp.Diff([]string{filepath.Join(to, "LICENSE"), filepath.Join(to, "portmap")}, got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
	if inode(t, filepath.Join(to, "LICENSE")).Mode() != 0o644 || inode(t, filepath.Join(to, "portmap")).Mode() != 0o755 {
		t.Error("modes are not those of the sources")
	}
	if _, err := install.Programs(filepath.Join(from, "none"), to); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a source: %v", err)
	}
}

// TestPrograms_Order: a program's dependencies are installed before it.
func TestPrograms_Order(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	for _, name := range []string{"b", "portmap", "portmap.reference", "portmap.reference.more", "portmap-x", "portmapper", "a.b.c", "a.b", "a"} {
		write(t, filepath.Join(from, name), name, 0o755)
	}
	got, err := install.Programs(from, to)
	for i, path := range got {
		got[i] = filepath.Base(path)
	}
	want := []string{"a.b.c", "a.b", "a", "b", "portmap.reference.more", "portmap.reference", "portmap", "portmap-x", "portmapper"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}

// TestConfig: mode 0644 with any umask; an identical file is not rewritten.
func TestConfig(t *testing.T) {
	t.Parallel()
	to := filepath.Join(t.TempDir(), "10-aws.conflist")
	for _, row := range []struct {
		text    string
		changed bool
	}{{"one", true}, {"one", false}, {"two", true}, {"", true}} {
		if changed, err := install.Config(to, []byte(row.text)); changed != row.changed || err != nil {
			t.Errorf("%q: changed %v, error %v", row.text, changed, err)
		}
		if read(t, to) != row.text || inode(t, to).Mode() != 0o644 {
			t.Errorf("%q: has %q, mode %v", row.text, read(t, to), inode(t, to).Mode())
		}
	}
}
