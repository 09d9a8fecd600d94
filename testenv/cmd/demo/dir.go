package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	dirPrefix = "cnictl-demo-"
	lockName  = "demo.lock"
)

// workDir is the directory of one run. A live run holds a lock in it, which the kernel
// releases however the run ends.
type workDir struct {
	path string
	lock *os.File
}

// newDir creates a directory, after removing those of runs that were killed.
func newDir() (*workDir, error) {
	if err := removeStale(os.TempDir()); err != nil {
		return nil, err
	}
	path, err := os.MkdirTemp("", dirPrefix)
	if err != nil {
		return nil, err
	}
	// Lock before the file gets its name, so that no other run can ever consider this one
	// dead.
	lock, err := os.OpenFile(filepath.Join(path, ".lock"), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err == nil {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err == nil {
		err = os.Rename(lock.Name(), filepath.Join(path, lockName))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), os.RemoveAll(path))
	}
	return &workDir{path, lock}, nil
}

// remove ends the run and removes its directory.
func (d *workDir) remove() error { return errors.Join(os.RemoveAll(d.path), d.lock.Close()) }

// keep ends the run and leaves its directory, which later runs do not remove either.
func (d *workDir) keep() error {
	return errors.Join(os.Remove(filepath.Join(d.path, lockName)), d.lock.Close())
}

// removeStale removes the directories of runs that ended without removing them: our user's,
// with a lock file that is not locked. Anything else with such a name stays.
func removeStale(in string) error {
	found, err := filepath.Glob(filepath.Join(in, dirPrefix+"*"))
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range found {
		if dead(dir) {
			errs = append(errs, os.RemoveAll(dir))
		}
	}
	return errors.Join(errs...)
}

// dead reports whether a directory belongs to an ended run of this user.
func dead(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || info.Mode().Type() != fs.ModeDir {
		return false
	}
	var stat unix.Stat_t
	if unix.Lstat(dir, &stat) != nil || int(stat.Uid) != os.Geteuid() {
		return false
	}
	fd, err := unix.Open(filepath.Join(dir, lockName), unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil
}
