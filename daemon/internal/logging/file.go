package logging

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/logline"
	"cnictl/daemon/logfile"
)

// textMovedAside is the first line of a log that takes the place of something else.
const textMovedAside = "Moved aside what was in the place of the log file"

// file is a log file that rotates. Only one goroutine writes to it. Another one removes and
// compresses old files, which takes a second for 100 MB.
type file struct {
	path string
	max  int64 // bytes
	now  func() time.Time

	open *os.File // nil if it could not be opened; the next write tries again
	size int64    // bytes

	wake  chan struct{} // of capacity 1: there may be old files
	stop  chan struct{}
	ended chan struct{}
	close sync.Once
}

// openFile opens a log file, and creates it and its directory if necessary. Close ends its
// goroutine.
func openFile(path string, most int64, now func() time.Time) (*file, error) {
	f := &file{path: path, max: most, now: now, wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{})}
	if err := f.reopen(); err != nil {
		return nil, err
	}
	f.wake <- struct{}{}
	go f.tend()
	return f, nil
}

// Write appends to the file. A file that would become too large is rotated first.
func (f *file) Write(p []byte) (int, error) {
	switch {
	case f.open == nil:
		if err := f.reopen(); err != nil {
			return 0, err
		}
	case f.size+int64(len(p)) > f.max:
		if err := f.rotate(); err != nil {
			return 0, err
		}
	}
	n, err := f.open.Write(p)
	f.size += int64(n)
	return n, err
}

// reopen opens the file. What is in its place but is no log file becomes a backup, which
// removes nothing and follows no link: the daemon needs a log, and must start whatever others
// put there.
func (f *file) reopen() error {
	dir, err := logfile.MakeDir(filepath.Dir(f.path))
	if err != nil {
		return err
	}
	defer dir.Close()
	fd, st, err := dir.Append(filepath.Base(f.path))
	var refused *logfile.Refused
	switch {
	case errors.As(err, &refused):
		if err := f.replace(dir, nil); err != nil {
			return errors.Join(refused, err)
		}
		line := logline.Append(nil, logline.Warn, f.now(), "", textMovedAside)
		n, err := f.open.Write(logline.End(logline.AppendString(line, logline.KeyError, refused.Error())))
		f.size += int64(n)
		return err
	case err != nil:
		return err
	}
	f.open, f.size = os.NewFile(uintptr(fd), f.path), st.Size
	if f.size >= f.max {
		return f.rotate()
	}
	return nil
}

// rotate starts a new file with the mode and, if the daemon may set it, the owner of the last.
func (f *file) rotate() error {
	var st unix.Stat_t
	err := unix.Fstat(int(f.open.Fd()), &st)
	err = errors.Join(err, f.open.Close())
	f.open = nil
	if err != nil {
		return err
	}
	dir, err := logfile.MakeDir(filepath.Dir(f.path))
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := f.replace(dir, &st); err != nil {
		return err
	}
	select {
	case f.wake <- struct{}{}:
	default: // it will look anyway
	}
	return nil
}

// replace gives what has the file's name the name of a backup, and creates the file.
func (f *file) replace(dir logfile.Dir, like *unix.Stat_t) error {
	name, fd, err := filepath.Base(f.path), -1, error(unix.EEXIST)
	for try := 0; try < 5 && errors.Is(err, unix.EEXIST); try++ { // others may put something there again
		if err := dir.Rotate(name, f.now()); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("rename: %w", err)
		}
		fd, err = dir.Create(name, unix.O_WRONLY|unix.O_APPEND)
	}
	if err != nil {
		return err
	}
	f.open, f.size = os.NewFile(uintptr(fd), f.path), 0
	if like == nil {
		return nil
	}
	return likeThe(fd, like)
}

// likeThe gives a new file the mode and owner of an older one.
func likeThe(fd int, older *unix.Stat_t) error {
	_ = unix.Fchown(fd, int(older.Uid), int(older.Gid)) // needs a capability that the container lacks
	return unix.Fchmod(fd, older.Mode&0o777)
}

// Close closes the file. It waits for the goroutine, which stops between two reads, but no
// longer than for a hanging disk.
func (f *file) Close() (err error) {
	f.close.Do(func() {
		if f.open != nil {
			err = f.open.Close()
		}
		close(f.stop)
		timer := time.NewTimer(flushTime)
		defer timer.Stop()
		select {
		case <-f.ended:
		case <-timer.C:
		}
	})
	return err
}

// tend removes and compresses old files when the log is opened and whenever it is rotated.
func (f *file) tend() {
	defer close(f.ended)
	for {
		select {
		case <-f.stop:
			return
		case <-f.wake:
			f.compressBackups()
		}
	}
}

// compressBackups reports no error: a file that cannot be compressed stays as it is.
func (f *file) compressBackups() {
	dir, err := logfile.OpenDir(filepath.Dir(f.path))
	if err != nil {
		return
	}
	defer dir.Close()
	for _, b := range dir.Prune(filepath.Base(f.path), f.now()) {
		if b.Name == b.Plain() {
			_ = f.compress(dir, b.Name)
		}
	}
}

var errStopped = errors.New("the log is closed")

// compress replaces a backup by its compressed copy. The copy has its last name from the
// beginning, as upstream's: readers prefer the backup as long as that exists, and a copy that
// was interrupted is replaced at the next start.
func (f *file) compress(dir logfile.Dir, name string) (err error) {
	fd, st, err := dir.Open(name, unix.O_RDONLY)
	if err != nil {
		return err
	}
	from := os.NewFile(uintptr(fd), name)
	defer func() { err = errors.Join(err, from.Close()) }()
	// A daemon that is being replaced may be at it. A larger file is not ours.
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil || st.Size > 2*f.max {
		return err
	}
	_ = dir.Remove(name + logfile.Packed)
	fd, err = dir.Create(name+logfile.Packed, unix.O_WRONLY)
	if err != nil {
		return err
	}
	to := os.NewFile(uintptr(fd), name+logfile.Packed)
	err = likeThe(fd, &st)
	if err == nil {
		packer := gzip.NewWriter(to)
		_, err = io.Copy(packer, io.LimitReader(stoppable{from, f.stop}, 2*f.max))
		err = errors.Join(err, packer.Close())
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return errors.Join(err, dir.Remove(name+logfile.Packed))
	}
	return dir.Remove(name)
}

// stoppable is a reader that fails once stop is closed.
type stoppable struct {
	io.Reader
	stop chan struct{}
}

func (s stoppable) Read(p []byte) (int, error) {
	select {
	case <-s.stop:
		return 0, errStopped
	default:
		return s.Reader.Read(p)
	}
}
