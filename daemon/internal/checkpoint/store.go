package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"cnictl/daemon/api/crashpoint"
)

const (
	dirMode  = 0o755 // upstream's, so that either daemon can replace the other
	tempMark = ".tmp"
)

// Steps of a Write after which the process may die. Tests stop there.
const (
	stepCreated = "temporary created"
	stepWritten = "temporary written"
	stepSynced  = "temporary synced"
	stepRenamed = "renamed"
)

// Store is one checkpoint file.
type Store struct {
	path string
	dir  string

	// at is called between the steps of a Write. Only tests set it.
	at func(step string)
}

// Open returns the store of a file, which need not exist yet. It removes what an earlier
// Write left behind when a crash cut it short.
func Open(path string) *Store {
	s := &Store{path: path, dir: filepath.Dir(path), at: func(string) {}}
	s.removeTemporaries()
	return s
}

// Path returns the path of the file.
func (s *Store) Path() string { return s.path }

// Exists reports whether a daemon has written the file since the node booted.
func (s *Store) Exists() bool {
	_, err := os.Lstat(s.path)
	return err == nil
}

// Write replaces the file durably. After an error the old file is still in place, unless
// only the last step, syncing the directory, failed: then the new one is in place, but a
// loss of power may bring back the old one.
func (s *Store) Write(data []byte) error {
	if err := s.write(data); err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	return nil
}

func (s *Store) write(data []byte) error {
	crashpoint.Here(crashpoint.BeforeFile)
	f, err := s.createTemporary()
	if err != nil {
		return err
	}
	s.at(stepCreated)
	crashpoint.Here(crashpoint.FileCreated)
	if err := s.replaceWith(f, data); err != nil {
		return errors.Join(err, ignoreMissing(os.Remove(f.Name())))
	}
	s.at(stepRenamed)
	crashpoint.Here(crashpoint.FileRenamed)
	return syncDir(s.dir)
}

// replaceWith fills, syncs and closes the temporary file and renames it into place.
func (s *Store) replaceWith(f *os.File, data []byte) error {
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Close())
	}
	s.at(stepWritten)
	crashpoint.Here(crashpoint.FileWritten)
	if err := f.Sync(); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	s.at(stepSynced)
	crashpoint.Here(crashpoint.FileSynced)
	return os.Rename(f.Name(), s.path)
}

// createTemporary creates a file of mode 0600 under a unique name, and the directory if it
// is missing.
func (s *Store) createTemporary() (*os.File, error) {
	pattern := filepath.Base(s.path) + tempMark + "*"
	f, err := os.CreateTemp(s.dir, pattern)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	if err := s.makeDir(); err != nil {
		return nil, err
	}
	return os.CreateTemp(s.dir, pattern)
}

// makeDir creates the directory with exactly dirMode, whatever the umask.
func (s *Store) makeDir() error {
	if err := os.MkdirAll(s.dir, dirMode); err != nil {
		return err
	}
	return os.Chmod(s.dir, dirMode)
}

// removeTemporaries removes regular files named like our temporary ones. It ignores
// failures: the files are unused, and Write picks free names.
func (s *Store) removeTemporaries() {
	names, err := s.siblings(tempMark)
	if err != nil {
		return
	}
	for _, name := range names {
		_ = os.Remove(name)
	}
}

// siblings lists the regular files beside the checkpoint whose names are the checkpoint's
// name, suffix and something more.
func (s *Store) siblings(suffix string) ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	start := filepath.Base(s.path) + suffix
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() && len(e.Name()) > len(start) && e.Name()[:len(start)] == start {
			names = append(names, filepath.Join(s.dir, e.Name()))
		}
	}
	return names, nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = errors.Join(d.Sync(), d.Close())
	crashpoint.Here(crashpoint.FileDirSynced)
	return err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
