package uml

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Variables of the environment that say where the kernel is.
const (
	dirVar   = "CNI_TEST_UML"   // the directory
	cacheVar = "CNI_TEST_CACHE" // moves the cache of "make uml"
)

// ErrMissing is part of the error of Find when there is no kernel to boot.
var ErrMissing = errors.New("no user-mode Linux (make uml gets it)")

// ErrRace is part of the error of Find in a program with the race detector.
var ErrRace = errors.New("the race detector does not run in user-mode Linux")

// Files is where tools/uml/build.sh put the kernel and its modules.
type Files struct{ dir string }

// Find looks where "make uml" puts them or the environment says.
func Find() (Files, error) {
	if raceDetector {
		return Files{}, fmt.Errorf("%w: %w", ErrMissing, ErrRace)
	}
	dir, err := directory()
	if err != nil {
		return Files{}, err
	}
	f := Files{dir}
	for _, path := range []string{f.kernel(), f.loader()} {
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
	return filepath.Join(cache, "uml-1"), nil
}

func (f Files) kernel() string { return filepath.Join(f.dir, "linux.uml") }

// loader is the program that the guest's kernel starts when it wants a module.
func (f Files) loader() string { return filepath.Join(f.dir, "load-module") }
