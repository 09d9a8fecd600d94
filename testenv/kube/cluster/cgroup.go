package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// cgroupMount is where the machine mounts its cgroups, of either version.
const cgroupMount = "/sys/fs/cgroup"

// hierarchies returns the directories in which a group must be created: one for each
// controller (version 1), or the only one (version 2).
func hierarchies() ([]string, error) {
	var fsinfo unix.Statfs_t
	if err := unix.Statfs(cgroupMount, &fsinfo); err != nil {
		return nil, fmt.Errorf("find cgroups: %w", err)
	}
	if fsinfo.Type == unix.CGROUP2_SUPER_MAGIC {
		return []string{cgroupMount}, nil
	}
	entries, err := os.ReadDir(cgroupMount)
	if err != nil {
		return nil, fmt.Errorf("find cgroups: %w", err)
	}
	var out []string
	for _, e := range entries {
		// Symlinks are aliases of a hierarchy; "unified" is hidden from nodes.
		if e.IsDir() && e.Name() != "unified" {
			out = append(out, filepath.Join(cgroupMount, e.Name()))
		}
	}
	return out, nil
}

// makeCgroup creates a group in every hierarchy. kubelet expects it to exist, with
// processors and memory to hand out.
func makeCgroup(path string) error {
	tops, err := hierarchies()
	if err != nil {
		return err
	}
	for _, top := range tops {
		at := top
		for part := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
			parent := at
			at = filepath.Join(at, part)
			if err := os.Mkdir(at, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("make cgroup: %w", err)
			}
			if err := inherit(parent, at); err != nil {
				return fmt.Errorf("make cgroup %s: %w", at, err)
			}
			if parent == top {
				continue // belongs to the machine: see identity
			}
			if err := pass(parent, missingControllers(parent)); err != nil {
				return fmt.Errorf("make cgroup %s: %w", at, err)
			}
		}
	}
	return nil
}

// inherit copies to a version 1 group what it does not inherit from its parent: the
// processors and memory nodes.
func inherit(parent, child string) error {
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(parent, name))
		if err != nil || len(strings.TrimSpace(string(value))) == 0 {
			continue // another controller, or version 2, where an empty value inherits the parent's
		}
		if err := os.WriteFile(filepath.Join(child, name), value, 0); err != nil {
			return err
		}
	}
	return nil
}

// kubeletControllers returns the version 2 controllers that kubelet requires if the kernel
// has them.
func kubeletControllers() []string { return []string{"cpu", "cpuset", "hugetlb", "memory", "pids"} }

// missingControllers returns the controllers that kubelet needs below a group and that the group has, but
// does not pass on. It returns none for a group of version 1.
func missingControllers(group string) []string {
	return controllersToEnable(groupFile(group, "cgroup.controllers"), groupFile(group, passedOn))
}

// passedOn is a group's file that lists the controllers enabled in its child groups.
const passedOn = "cgroup.subtree_control"

func groupFile(group, name string) string {
	text, err := os.ReadFile(filepath.Join(group, name))
	if err != nil {
		return "" // version 1
	}
	return string(text)
}

// controllersToEnable selects the controllers that a group has but still has to pass on.
func controllersToEnable(has, passes string) (out []string) {
	for _, name := range kubeletControllers() {
		if slices.Contains(strings.Fields(has), name) && !slices.Contains(strings.Fields(passes), name) {
			out = append(out, name)
		}
	}
	return out
}

// pass enables controllers in the child groups of a group.
func pass(group string, controllers []string) error {
	for _, name := range controllers {
		if err := os.WriteFile(filepath.Join(group, passedOn), []byte("+"+name), 0); err != nil {
			return fmt.Errorf("pass controller %s on, which kubelet needs: %w", name, err)
		}
	}
	return nil
}

// controllersToDisable selects the controllers to disable again, from a record of those that pass
// enabled.
func controllersToDisable(record, passes string) (out []string) {
	for _, name := range kubeletControllers() {
		if slices.Contains(strings.Fields(record), name) && slices.Contains(strings.Fields(passes), name) {
			out = append(out, name)
		}
	}
	return out
}

// takeBack undoes pass. inUse reports that something else, such as another cluster, now needs
// one of the controllers.
func takeBack(group, record string) (inUse bool, _ error) {
	for _, name := range controllersToDisable(record, groupFile(group, passedOn)) {
		err := os.WriteFile(filepath.Join(group, passedOn), []byte("-"+name), 0)
		switch {
		case errors.Is(err, syscall.EBUSY):
			inUse = true
		case err != nil:
			return inUse, fmt.Errorf("pass controller %s on no more: %w", name, err)
		}
	}
	return inUse, nil
}

// cgroupEndWithin bounds how long killed processes may take to leave their groups.
const cgroupEndWithin = 10 * time.Second

// removeCgroup removes a group and its child groups. Its processes have been killed, but some
// may still be exiting.
func removeCgroup(path string) error {
	tops, err := hierarchies()
	if err != nil {
		return err
	}
	for _, top := range tops {
		deadline := time.Now().Add(cgroupEndWithin)
		for {
			err := removeTree(filepath.Join(top, path))
			if err == nil {
				break
			}
			if !errors.Is(err, syscall.EBUSY) || time.Now().After(deadline) {
				return fmt.Errorf("remove cgroup: %w", err)
			}
			<-time.After(20 * time.Millisecond)
		}
	}
	return nil
}

// removeTree removes directories, deepest first; a cgroup's files cannot be removed.
func removeTree(dir string) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, d := range slices.Backward(dirs) {
		if err := os.Remove(d); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
