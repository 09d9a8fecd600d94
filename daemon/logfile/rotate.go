package logfile

import (
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Limits of upstream's logs.
const (
	MaxSize    = 100 << 20 // bytes of a file
	maxBackups = 5
	maxAge     = 30 * 24 * time.Hour
	backupTime = "2006-01-02T15-04-05.000" // UTC, in the names of backups
)

// Packed is the suffix of compressed backups.
const Packed = ".gz"

// Backup is a rotated file of a log.
type Backup struct {
	Name string // NAME-TIME.EXTENSION, with Packed if it is compressed
	at   time.Time
}

// Plain is the name before the backup was compressed.
func (b Backup) Plain() string { return strings.TrimSuffix(b.Name, Packed) }

// Rotate gives what has the name of a log the name of a backup.
func (d Dir) Rotate(name string, now time.Time) error {
	ext := path.Ext(name)
	return unix.Renameat(d.fd, name, d.fd, strings.TrimSuffix(name, ext)+"-"+now.UTC().Format(backupTime)+ext)
}

// Backups lists what has the name of a backup of a log, newest first. While one is compressed,
// both its files are listed, the whole one first.
func (d Dir) Backups(name string) (found []Backup) {
	for _, entry := range d.names() {
		if at, ok := backupAt(entry, name); ok {
			found = append(found, Backup{entry, at})
		}
	}
	slices.SortFunc(found, func(a, b Backup) int {
		if c := b.at.Compare(a.at); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return found
}

// Prune removes the backups beyond upstream's limits, and returns the others.
func (d Dir) Prune(name string, now time.Time) (kept []Backup) {
	count, last := 0, ""
	for _, b := range d.Backups(name) {
		if b.Plain() != last {
			count, last = count+1, b.Plain()
		}
		if count > maxBackups || now.Sub(b.at) > maxAge {
			_ = d.Remove(b.Name)
		} else {
			kept = append(kept, b)
		}
	}
	return kept
}

// names lists a directory; nil if it cannot be read.
func (d Dir) names() (names []string) {
	if _, err := unix.Seek(d.fd, 0, unix.SEEK_SET); err != nil {
		return nil
	}
	buf := make([]byte, 8<<10)
	for {
		n, err := unix.ReadDirent(d.fd, buf)
		if err != nil || n <= 0 {
			return names
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}

// backupAt is the time in the name of a backup of a log.
func backupAt(entry, name string) (time.Time, bool) {
	ext := path.Ext(name)
	rest, ok := strings.CutPrefix(strings.TrimSuffix(entry, Packed), strings.TrimSuffix(name, ext)+"-")
	if !ok {
		return time.Time{}, false
	}
	rest, ok = strings.CutSuffix(rest, ext)
	if !ok {
		return time.Time{}, false
	}
	at, err := time.Parse(backupTime, rest)
	return at, err == nil
}
