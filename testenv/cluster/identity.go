package cluster

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// cgroupPrefix marks the top of what a cluster makes; the identity follows.
const cgroupPrefix = "cnictl-"

// identity tells the cgroups of clusters apart. Its lock ends with the process, so that
// others know which groups nobody will remove.
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
	return &identity{name: name, lock: f}, nil
}

// lockPath does not follow TMPDIR: clusters of several users of one machine meet there.
func lockPath(name string) string { return filepath.Join("/tmp", cgroupPrefix+name+".lock") }

func (i *identity) cgroup() string { return "/" + cgroupPrefix + i.name }

// close removes the groups and then the lock.
func (i *identity) close() error {
	return errors.Join(removeCgroup(i.cgroup()), os.Remove(i.lock.Name()), i.lock.Close())
}

// SweepCgroups removes what clusters that were killed could not: their cgroups and locks.
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

// sweep removes the groups of one cluster unless it runs.
func sweep(name string) error {
	if len(name) != 8 {
		return nil // not of a cluster
	}
	f, err := os.OpenFile(lockPath(name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
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
