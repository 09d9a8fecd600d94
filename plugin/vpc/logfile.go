package vpc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Rotation of the log file: as the original's, except that backups are not
// compressed. 100 MB take gzip 1.5 s, and nobody outlives the command to do it: the
// original starts compression in a goroutine that dies with the process.
const (
	logMaxSize    = 100 << 20
	logMaxBackups = 5
	logMaxAge     = 30 * 24 * time.Hour
	backupTime    = "2006-01-02T15-04-05.000" // in the name of a backup, as lumberjack has it
)

// appendLog appends to the file in one write, so that lines of parallel runs don't
// mix. The usual run opens, asks for the size, writes and closes.
func appendLog(path string, b []byte, now func() time.Time) error {
	const flags = unix.O_WRONLY | unix.O_APPEND | unix.O_CREAT | unix.O_CLOEXEC
	fd, err := unix.Open(path, flags, 0o600)
	if errors.Is(err, unix.ENOENT) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("create log directory: %w", err)
		}
		fd, err = unix.Open(path, flags, 0o600)
	}
	if err != nil {
		return fmt.Errorf("open log %s: %w", path, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err == nil && st.Size >= logMaxSize && st.Mode&unix.S_IFMT == unix.S_IFREG {
		rotate(path, fd, now()) // this run still writes to the old file
	}
	_, err = unix.Write(fd, b)
	return err
}

// rotate renames the file that fd is open on, unless another run is at it or was
// faster, and removes old backups.
func rotate(path string, fd int, now time.Time) {
	if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
		return
	}
	var open, named unix.Stat_t
	if unix.Fstat(fd, &open) != nil || unix.Stat(path, &named) != nil || open.Ino != named.Ino || open.Dev != named.Dev {
		return
	}
	stem, ext := splitLogName(path)
	if os.Rename(path, stem+"-"+now.UTC().Format(backupTime)+ext) != nil {
		return
	}
	removeBackups(stem, ext, now)
}

func splitLogName(path string) (stem, ext string) {
	ext = filepath.Ext(path)
	return strings.TrimSuffix(path, ext), ext
}

func removeBackups(stem, ext string, now time.Time) {
	entries, err := os.ReadDir(filepath.Dir(stem))
	if err != nil {
		return
	}
	var backups []string // newest first
	for _, e := range slices.Backward(entries) {
		if isBackup(e, filepath.Base(stem), ext) {
			backups = append(backups, e.Name())
		}
	}
	for i, name := range backups {
		at, _ := backupAt(name, filepath.Base(stem), ext)
		if i >= logMaxBackups || now.Sub(at) > logMaxAge {
			_ = os.Remove(filepath.Join(filepath.Dir(stem), name))
		}
	}
}

func isBackup(e fs.DirEntry, stem, ext string) bool {
	_, ok := backupAt(e.Name(), stem, ext)
	return ok && e.Type().IsRegular()
}

// backupAt is the time in the name of a backup; those of the original may be
// compressed.
func backupAt(name, stem, ext string) (time.Time, bool) {
	name, ok := strings.CutPrefix(strings.TrimSuffix(name, ".gz"), stem+"-")
	if !ok {
		return time.Time{}, false
	}
	name, ok = strings.CutSuffix(name, ext)
	if !ok {
		return time.Time{}, false
	}
	at, err := time.Parse(backupTime, name)
	return at, err == nil
}
