package cluster

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// cgroupPrefix begins the name of a cluster's top cgroup; the identity follows.
const cgroupPrefix = "cnictl-"

// identity distinguishes the cgroups of clusters. Its lock ends with the process, so that others
// can see which groups are stale. Its file lists the controllers that were enabled for this
// cluster in the machine's groups, and that are disabled when the cluster ends.
type identity struct {
	name string
	lock *os.File
}

func newIdentity() (*identity, error) {
	name := strings.ToLower(rand.Text()[:8])
	f, err := os.OpenFile(lockPath(name), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make lock: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("take lock: %w", err), f.Close(), os.Remove(f.Name()))
	}
	i := &identity{name: name, lock: f}
	controllers := missingControllers(cgroupMount)
	if _, err := f.WriteString(strings.Join(controllers, " ")); err != nil {
		return nil, errors.Join(fmt.Errorf("write lock: %w", err), i.close())
	}
	if err := pass(cgroupMount, controllers); err != nil {
		return nil, errors.Join(err, i.close())
	}
	return i, nil
}

// lockPath ignores TMPDIR: the clusters of all users of a machine share this directory.
func lockPath(name string) string { return filepath.Join("/tmp", cgroupPrefix+name+".lock") }

func (i *identity) cgroup() string { return "/" + cgroupPrefix + i.name }

// maxRecordSize is more than newIdentity ever writes.
const maxRecordSize = 256

// close removes the groups and then the lock. The lock stays for the next sweep while others
// use controllers that are to be taken back.
func (i *identity) close() error {
	record, err := io.ReadAll(io.NewSectionReader(i.lock, 0, maxRecordSize))
	if err != nil {
		return errors.Join(fmt.Errorf("read lock: %w", err), i.lock.Close())
	}
	if err := removeCgroup(i.cgroup()); err != nil {
		return errors.Join(err, i.lock.Close())
	}
	inUse, err := takeBack(cgroupMount, string(record))
	if err == nil && !inUse {
		if err = os.Remove(i.lock.Name()); errors.Is(err, fs.ErrNotExist) {
			err = nil // another process swept, too
		}
	}
	return errors.Join(err, i.lock.Close())
}

// SweepCgroups removes the cgroups and locks of clusters that were killed.
func SweepCgroups() error {
	tops, err := hierarchies()
	if err != nil {
		return err
	}
	left := map[string]bool{}
	for _, pattern := range append(tops, "/tmp") {
		found, err := filepath.Glob(filepath.Join(pattern, cgroupPrefix+"*"))
		if err != nil {
			return err
		}
		for _, path := range found {
			left[strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), cgroupPrefix), ".lock")] = true
		}
	}
	for name := range left {
		if err := sweep(name); err != nil {
			return fmt.Errorf("remove what a killed cluster left: %w", err)
		}
	}
	return nil
}

// sweep removes the groups of one cluster unless the cluster is running.
func sweep(name string) error {
	if len(name) != 8 {
		return nil // not a cluster's
	}
	f, err := openLock(lockPath(name))
	if f == nil || err != nil {
		return err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return f.Close()
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	return (&identity{name: name, lock: f}).close()
}

// openLock opens a lock, or creates it. It returns nil for anything but a regular file of this
// user: the directory is world-writable, and a symlink could lead elsewhere.
func openLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f, err = os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		if errors.Is(err, fs.ErrExist) {
			return nil, nil // another process sweeps, too
		}
		return f, err
	case err != nil && !os.IsPermission(err) && !errors.Is(err, unix.ELOOP) && !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.ENXIO):
		return nil, err
	case err != nil:
		return nil, nil
	}
	var is unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &is); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if is.Mode&unix.S_IFMT != unix.S_IFREG || int(is.Uid) != os.Geteuid() || is.Nlink != 1 {
		return nil, f.Close()
	}
	return f, nil
}
