package vm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Environment variables that locate the files.
const (
	dirVar   = "CNI_TEST_VM"    // the directory
	cacheVar = "CNI_TEST_CACHE" // moves the cache of "make vm"
)

// ErrMissing is part of the error of Find if there is nothing to boot.
var ErrMissing = errors.New("no virtual machine (make vm gets it)")

// Files is where tools/vm/build.sh put QEMU, the kernel and its modules.
type Files struct{ dir string }

// Find looks where the environment says or "make vm" puts the files.
func Find() (Files, error) {
	dir, err := directory()
	if err != nil {
		return Files{}, err
	}
	f := Files{dir}
	for _, path := range []string{f.qemu(), f.kernel(), f.loader(), f.bootModules()} {
		if _, err := os.Stat(path); err != nil {
			return Files{}, fmt.Errorf("%w: %w", ErrMissing, err)
		}
	}
	return f, nil
}

func directory() (string, error) {
	if dir := os.Getenv(dirVar); dir != "" {
		return filepath.Abs(dir)
	}
	cache := os.Getenv(cacheVar)
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("%w (set %s or %s): %w", ErrMissing, dirVar, cacheVar, err)
		}
		cache = filepath.Join(user, "cnictl")
	}
	return filepath.Join(cache, "vm-1"), nil
}

func (f Files) qemu() string   { return filepath.Join(f.dir, "qemu-system-x86_64") }
func (f Files) kernel() string { return filepath.Join(f.dir, "vmlinux") }

// loader is the program that the guest's kernel starts to load a module.
func (f Files) loader() string { return filepath.Join(f.dir, "load-module") }

// bootModules is the file that lists the modules without which the guest does not see its
// devices, in load order.
func (f Files) bootModules() string { return filepath.Join(f.dir, "boot-modules") }

// modules reads that list.
func (f Files) modules() (paths []string, err error) {
	list, err := os.ReadFile(f.bootModules())
	if err != nil {
		return nil, err
	}
	for name := range strings.FieldsSeq(string(list)) {
		paths = append(paths, filepath.Join(f.dir, name))
	}
	return paths, nil
}
