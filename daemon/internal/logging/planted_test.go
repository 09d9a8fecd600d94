package logging

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/introspect"
)

// secret is what a file elsewhere on the node contains.
const secret = "of the service account"

// victim creates a file outside the log directory, which must not change and whose content
// must not get into the directory.
func victim(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(path, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if b, err := os.ReadFile(path); err != nil || string(b) != secret {
			t.Errorf("the file elsewhere has %d bytes, %v", len(b), err)
		}
	})
	return path
}

// plants are what someone with write access to the log directory can put in place of a log.
var plants = map[string]func(victim, path string) error{
	"a link":            os.Symlink,
	"a hard link":       os.Link,
	"a FIFO":            func(_, path string) error { return unix.Mkfifo(path, 0o600) },
	"a directory":       func(_, path string) error { return os.Mkdir(path, 0o755) },
	"a link to no file": func(victim, path string) error { return os.Symlink(victim+"-new", path) },
	"a link to a FIFO":  func(victim, path string) error { return linkToFIFO(victim+"-fifo", path) },
}

func linkToFIFO(fifo, path string) error {
	return errors.Join(unix.Mkfifo(fifo, 0o600), os.Symlink(fifo, path))
}

// TestOpen_Planted: whatever is in the place of ipamd.log is moved aside like a full one. The
// daemon starts, logs to a file of its own, and says what it found.
func TestOpen_Planted(t *testing.T) {
	t.Parallel()
	for what, plant := range plants {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			path, elsewhere := filepath.Join(t.TempDir(), "ipamd.log"), victim(t)
			if err := plant(elsewhere, path); err != nil {
				t.Fatal(err)
			}
			log, closer, err := Open(Options{Path: path, Level: "info"})
			if err != nil {
				t.Fatal(err)
			}
			log.Info("a line")
			if err := closer.Close(); err != nil {
				t.Error(err)
			}
			doc, err := Tail(t.Context(), path, introspect.LogQuery{Lines: 9})
			if err != nil || len(doc.Lines) != 2 || !strings.Contains(doc.Lines[0], textMovedAside) || !strings.Contains(doc.Lines[1], "a line") {
				t.Errorf("%+v, %v", doc, err)
			}
			if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || info.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
			if _, err := os.Lstat(elsewhere + "-new"); err == nil {
				t.Error("a file is created through a link")
			}
		})
	}
}

// TestCompress_Planted: of a rotated log's two names each may be taken by something else. What
// is no regular file of the log directory is neither read nor written.
func TestCompress_Planted(t *testing.T) {
	t.Parallel()
	const name = "ipamd-2026-11-27T00-00-00.000.log"
	for what, plant := range plants {
		t.Run("compress "+what, func(t *testing.T) {
			t.Parallel()
			dir, elsewhere := t.TempDir(), victim(t)
			if err := plant(elsewhere, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			// An older one shows that the daemon has looked.
			if err := os.WriteFile(filepath.Join(dir, "ipamd-2026-11-26T00-00-00.000.log"), []byte("older"), 0o600); err != nil {
				t.Fatal(err)
			}
			files := tended(t, dir, "ipamd-2026-11-26T00-00-00.000.log.gz")
			for _, file := range files {
				if file == name+".gz" {
					t.Errorf("%s is compressed", what)
				}
			}
		})
		t.Run("compress into "+what, func(t *testing.T) {
			t.Parallel()
			dir, elsewhere := t.TempDir(), victim(t)
			err := errors.Join(plant(elsewhere, filepath.Join(dir, name+".gz")), os.WriteFile(filepath.Join(dir, name), []byte("full"), 0o640),
				os.WriteFile(filepath.Join(dir, "ipamd-2026-11-26T00-00-00.000.log"), []byte("older"), 0o600))
			if err != nil {
				t.Fatal(err)
			}
			tended(t, dir, "ipamd-2026-11-26T00-00-00.000.log.gz")
			info, err := os.Lstat(filepath.Join(dir, name+".gz"))
			switch {
			case err != nil:
				t.Error(err)
			case info.IsDir(): // cannot be removed: the log stays as it is
				if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(text) != "full" {
					t.Errorf("%q, %v", text, err)
				}
			case !info.Mode().IsRegular() || info.Mode().Perm() != 0o640:
				t.Errorf("it has the mode %v", info.Mode())
			case unzipped(t, filepath.Join(dir, name+".gz")) != 4:
				t.Error("it does not contain the log")
			}
			if _, err := os.Lstat(elsewhere + "-new"); err == nil {
				t.Error("a file is created through a link")
			}
		})
	}
}

// tended opens and closes the log of a directory once it has a file of that name and its source
// is gone, and returns the names of all files.
func tended(t *testing.T, dir, name string) (files []string) {
	t.Helper()
	log, closer, err := Open(Options{Path: filepath.Join(dir, "ipamd.log"), Level: "info"})
	if err != nil {
		t.Fatal(err)
	}
	log.Info("a line")
	files = await(t, dir, func(files []string) bool {
		_, err := os.Stat(filepath.Join(dir, strings.TrimSuffix(name, ".gz")))
		return errors.Is(err, os.ErrNotExist) && len(files) > 0
	})
	if err := closer.Close(); err != nil {
		t.Error(err)
	}
	return files
}

// TestTail_Planted: /v1/logs shows nothing of other files, and goes past what is no log to the
// one before it.
func TestTail_Planted(t *testing.T) {
	t.Parallel()
	for what, plant := range plants {
		for _, name := range []string{"ipamd.log", "ipamd-2026-11-27T00-00-00.000.log", "ipamd-2026-11-27T00-00-00.000.log.gz"} {
			t.Run(what+" as "+name, func(t *testing.T) {
				t.Parallel()
				dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "victim")
				for path, text := range map[string]string{
					elsewhere: entries(50, 52), filepath.Join(dir, "ipamd-2026-11-26T00-00-00.000.log"): entries(0, 2), filepath.Join(dir, "ipamd.log"): entries(2, 4),
				} {
					if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				path := filepath.Join(dir, name)
				if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
				if err := plant(elsewhere, path); err != nil {
					t.Fatal(err)
				}
				doc, err := Tail(t.Context(), filepath.Join(dir, "ipamd.log"), introspect.LogQuery{Lines: 9})
				switch {
				case name == "ipamd.log" && err == nil:
					t.Errorf("no error, but %v", doc.Lines)
				case name != "ipamd.log" && (err != nil || numbers(doc.Lines) != "0 1 2 3"):
					t.Errorf("%v, %v", doc.Lines, err)
				}
			})
		}
	}
}

// TestRotation_Replaced: what takes the place of the file while the daemon writes is moved
// aside too, and followed nowhere.
func TestRotation_Replaced(t *testing.T) {
	t.Parallel()
	for what, plant := range plants {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			path, elsewhere := filepath.Join(t.TempDir(), "ipamd.log"), victim(t)
			f, err := openFile(path, 10, time.Now)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write([]byte("first\n")); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(os.Remove(path), plant(elsewhere, path)); err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write([]byte("second\n")); err != nil {
				t.Error(err)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			info, err := os.Lstat(path)
			text, err2 := os.ReadFile(path)
			if err := errors.Join(err, err2); err != nil || !info.Mode().IsRegular() || string(text) != "second\n" {
				t.Errorf("%v, %q, %v", info.Mode(), text, err)
			}
		})
	}
}
