package pluginlog

import (
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The log file rotates as upstream's does, except that backups are not compressed: gzip
// takes half a second for 100 MB of these lines, as long as a hundred ADDs, and no process
// outlives the command to do it. Upstream compresses in a goroutine that dies with the
// process.
const (
	logMaxSize    = 100 << 20
	logMaxBackups = 5
	logMaxAge     = 30 * 24 * time.Hour
	backupTime    = "2006-01-02T15-04-05.000" // in the names of backups, lumberjack's format
)

// appendLog appends to the file in one write, so that the lines of parallel runs don't
// mix. Normally it opens the file, stats it, writes and closes.
func appendLog(name string, b []byte, now func() time.Time) error {
	// The last part of the name may be no link: who can write to the directory could have
	// root append to any file.
	const flags = unix.O_WRONLY | unix.O_APPEND | unix.O_CREAT | unix.O_CLOEXEC | unix.O_NOFOLLOW
	fd, err := unix.Open(name, flags, 0o600)
	if errors.Is(err, unix.ENOENT) {
		makeDirectory(path.Dir(name))
		fd, err = unix.Open(name, flags, 0o600)
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err == nil && st.Size >= logMaxSize && st.Mode&unix.S_IFMT == unix.S_IFREG {
		rotate(name, fd, now()) // this run still writes to the old file
	}
	_, err = unix.Write(fd, b)
	return err
}

// makeDirectory creates a directory and its parents. It reports no error, because opening
// the file shows whether it worked.
func makeDirectory(dir string) {
	if errors.Is(unix.Mkdir(dir, 0o755), unix.ENOENT) && dir != "/" && dir != "." {
		makeDirectory(path.Dir(dir))
		_ = unix.Mkdir(dir, 0o755)
	}
}

// rotate renames the file that fd is open on, unless another run is rotating it or already
// has, and removes old backups.
func rotate(name string, fd int, now time.Time) {
	if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
		return
	}
	var open, named unix.Stat_t
	if unix.Fstat(fd, &open) != nil || unix.Stat(name, &named) != nil || open.Ino != named.Ino || open.Dev != named.Dev {
		return
	}
	ext := path.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	if unix.Rename(name, stem+"-"+now.UTC().Format(backupTime)+ext) != nil {
		return
	}
	removeBackups(path.Dir(stem), path.Base(stem), ext, now)
}

func removeBackups(dir, stem, ext string, now time.Time) {
	names := directory(dir)
	slices.Sort(names) // oldest first, by the time in the name
	kept := 0
	for _, name := range slices.Backward(names) {
		at, ok := backupAt(name, stem, ext)
		switch {
		case !ok:
		case kept == logMaxBackups || now.Sub(at) > logMaxAge:
			_ = unix.Unlink(path.Join(dir, name))
		default:
			kept++
		}
	}
}

// directory lists the names in a directory; nil if it cannot be read.
func directory(dir string) (names []string) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	buf := make([]byte, 8<<10)
	for {
		n, err := unix.ReadDirent(fd, buf)
		if err != nil || n <= 0 {
			return names
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}

// backupAt is the time in the name of a backup. Upstream's backups may be compressed.
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
