package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"cnictl/daemon/api/checkpoint"
)

const (
	// maxSize bounds what is read: 100,000 entries are about 30 MB.
	maxSize = 64 << 20

	damagedMark = ".damaged-"
	maxDamaged  = 5 // files set aside; the oldest is removed first
)

// LoadResult is the result of a Load.
type LoadResult struct {
	// Entries of a good file, or the salvaged ones if Problem is set.
	Entries []checkpoint.Entry
	// Missing: there is no file, as on a new or rebooted node.
	Missing bool
	// Problem says why the file was rejected, nil for a good or missing one:
	// a *checkpoint.FormatError or a *UnusableError.
	Problem error
	// KeptAside is the new path of a rejected file.
	KeptAside string
}

// UnusableError means that whatever is at the path cannot be a checkpoint.
type UnusableError struct{ Path, Reason string }

func (e *UnusableError) Error() string { return "read " + e.Path + ": it is " + e.Reason }

// Load reads the file. A file that is damaged, foreign or of another version is renamed
// aside and reported in LoadResult.Problem, not as an error. An error means that the
// file system failed; the result then holds whatever could be read.
//
// A file that could not be read (EIO, EMFILE, EACCES) is an error and stays in place: it
// may be intact, and it holds the pods' addresses.
func (s *Store) Load() (LoadResult, error) {
	s.removeTemporaries()
	data, err := s.read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := s.makeDirIfMissing(); err != nil {
			return LoadResult{Missing: true}, fmt.Errorf("load checkpoint: %w", err)
		}
		return LoadResult{Missing: true}, nil
	case err != nil:
		if unusable := (*UnusableError)(nil); errors.As(err, &unusable) {
			return s.setAside(LoadResult{Problem: unusable})
		}
		return LoadResult{}, fmt.Errorf("load checkpoint (left in place, as it may be intact; the next start retries): %w", err)
	}
	entries, err := checkpoint.Decode(data)
	if err != nil {
		return s.setAside(LoadResult{Entries: checkpoint.Salvage(data), Problem: err})
	}
	return LoadResult{Entries: entries}, nil
}

func (s *Store) makeDirIfMissing() error {
	_, err := os.Stat(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return s.makeDir()
	}
	return err
}

// read reads the file if it is regular; opening a pipe, for example, could block.
func (s *Store) read() (data []byte, err error) {
	info, err := os.Stat(s.path)
	if errors.Is(err, syscall.ELOOP) {
		return nil, &UnusableError{s.path, "a symbolic link to itself"}
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &UnusableError{s.path, "of mode " + info.Mode().Type().String() + ", not a regular file"}
	}
	f, err := os.Open(s.path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	data, err = io.ReadAll(io.LimitReader(f, maxSize+1))
	if err == nil && len(data) > maxSize {
		return nil, &UnusableError{s.path, fmt.Sprintf("larger than %d bytes", maxSize)}
	}
	return data, err
}

// setAside renames the file rejected with res.Problem.
func (s *Store) setAside(res LoadResult) (LoadResult, error) {
	last := 0
	kept, err := s.damaged()
	if err == nil && len(kept) > 0 {
		last = kept[len(kept)-1].number
	}
	to := s.path + damagedMark + strconv.Itoa(last+1)
	if err := errors.Join(err, os.Rename(s.path, to)); err != nil {
		return res, fmt.Errorf("set unreadable checkpoint aside: %w", err)
	}
	res.KeptAside = to
	for len(kept) >= maxDamaged {
		if err := ignoreMissing(os.Remove(kept[0].path)); err != nil {
			return res, fmt.Errorf("remove oldest damaged checkpoint: %w", err)
		}
		kept = kept[1:]
	}
	if err := syncDir(s.dir); err != nil {
		return res, fmt.Errorf("set unreadable checkpoint aside: %w", err)
	}
	return res, nil
}

type damagedFile struct {
	path   string
	number int
}

// damaged lists the files set aside, oldest first.
func (s *Store) damaged() ([]damagedFile, error) {
	names, err := s.siblings(damagedMark)
	if err != nil {
		return nil, err
	}
	var files []damagedFile
	for _, name := range names {
		if n, err := strconv.Atoi(strings.TrimPrefix(name, s.path+damagedMark)); err == nil && n > 0 {
			files = append(files, damagedFile{name, n})
		}
	}
	slices.SortFunc(files, func(x, y damagedFile) int { return cmp.Compare(x.number, y.number) })
	return files, nil
}
