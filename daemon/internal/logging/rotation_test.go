package logging

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/logfile"
	"cnictl/testenv"
)

// TestRotation fills a log to its 100 MB, beside seven older ones: the next line starts a
// new file, the full one is compressed under a name of upstream's form, and of the others
// only those among the newest five and not older than 30 days are kept.
func TestRotation(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("skip: -short: compresses 100 MB")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "ipamd.log")
	if logfile.MaxSize != 100<<20 {
		t.Errorf("rotates after %d bytes", logfile.MaxSize)
	}
	if err := os.WriteFile(path, []byte("first\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, logfile.MaxSize-10); err != nil { // sparse: uses no disk space
		t.Fatal(err)
	}
	now := time.Now().UTC()
	backup := func(age time.Duration) string {
		return "ipamd-" + now.Add(-age).Format("2006-01-02T15-04-05.000") + ".log.gz"
	}
	const day = 24 * time.Hour
	ages := []time.Duration{day, 2 * day, 3 * day, 29 * day, 31 * day, 4 * day, 40 * day}
	for _, age := range ages {
		if err := os.WriteFile(filepath.Join(dir, backup(age)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log, closer, err := Open(Options{Path: path, Level: "info"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		log.Info("a line", "count", i)
	}
	want := []string{"ipamd.log", backup(day), backup(2 * day), backup(3 * day), backup(4 * day)}
	files := await(t, dir, func(files []string) bool {
		if slices.Contains(files, backup(29*day)) || slices.ContainsFunc(files, func(name string) bool {
			return strings.HasSuffix(name, ".log") && name != "ipamd.log"
		}) {
			return false // the full one is still being written or compressed
		}
		data, err := os.ReadFile(path)
		return len(files) == len(want)+1 && err == nil && strings.Count(string(data), "\n") == 3
	})
	for _, name := range want {
		if !slices.Contains(files, name) {
			t.Errorf("%s is gone; there are %v", name, files)
		}
	}
	full := slices.DeleteFunc(slices.Clone(files), func(name string) bool { return slices.Contains(want, name) })
	if !regexp.MustCompile(`^ipamd-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}\.log\.gz$`).MatchString(full[0]) {
		t.Errorf("full file is now %v", full)
	}
	if size := unzipped(t, filepath.Join(dir, full[0])); size != logfile.MaxSize-10 {
		t.Errorf("%d bytes in %s", size, full[0])
	}
	if err := closer.Close(); err != nil {
		t.Error(err)
	}
}

// await polls the directory: old files are handled in the background.
func await(t *testing.T, dir string, done func([]string) bool) (files []string) {
	t.Helper()
	testenv.EventuallyErr(t, "the log files", func() error {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		files = nil
		for _, e := range entries {
			files = append(files, e.Name())
		}
		if !done(files) {
			return fmt.Errorf("there are %v", files)
		}
		return nil
	})
	return files
}

func unzipped(t *testing.T, path string) int64 {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, z)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
