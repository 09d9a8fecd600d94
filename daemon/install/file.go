package install

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// tempMark separates the name of a file from the suffix that makes its temporary file's
// name unique. Runtimes read *.conf, *.conflist and *.json, so none of them takes a
// temporary file for a configuration.
const tempMark = ".tmp"

// Program copies a program, or any other regular file, with its permissions. At every
// moment the target is the old file or the whole new one, executable. A target that already
// matches is left alone; changed reports whether it was written.
//
// A symbolic link at the target is replaced and not followed, so nothing is written outside
// the directory.
func Program(from, to string) (changed bool, err error) {
	source, err := os.Open(from)
	if err != nil {
		return false, fmt.Errorf("install %s: %w", to, err)
	}
	defer source.Close()
	info, err := source.Stat()
	if err != nil {
		return false, fmt.Errorf("install %s: %w", to, err)
	}
	if !info.Mode().IsRegular() {
		return false, fmt.Errorf("install %s: %s is not a regular file", to, from)
	}
	return place(to, source, info.Size(), info.Mode().Perm())
}

// Config installs a text as Program does a file, with mode 0644.
func Config(to string, text []byte) (changed bool, err error) {
	return place(to, bytes.NewReader(text), int64(len(text)), 0o644)
}

// State installs a text as Program does a file, for its owner only.
func State(to string, text []byte) error {
	_, err := place(to, bytes.NewReader(text), int64(len(text)), 0o600)
	return err
}

// place makes the target equal to the source.
func place(to string, source io.ReadSeeker, size int64, mode fs.FileMode) (changed bool, err error) {
	removeLeftovers(to)
	same, err := equal(to, source, size, mode)
	if err == nil && !same {
		err = replace(to, source, mode)
	}
	if err != nil {
		return false, fmt.Errorf("install %s: %w%s", to, err, advice(err))
	}
	return !same, nil
}

// advice says what to do about an error of the file system.
func advice(err error) string {
	switch {
	case errors.Is(err, unix.EROFS):
		return "; the directory must be writable: mount the host's directory there"
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return "; the node's disk is full, the previous file is still in place"
	case errors.Is(err, fs.ErrNotExist):
		return "; the directory must exist: mount the host's directory there"
	case errors.Is(err, fs.ErrPermission):
		return "; the directory must be writable to user 0 without further capabilities"
	}
	return ""
}

// equal compares the target with the source and rewinds the source.
func equal(to string, source io.ReadSeeker, size int64, mode fs.FileMode) (bool, error) {
	info, err := os.Lstat(to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case info.IsDir():
		return false, errors.New("a directory has that name; remove it")
	case !info.Mode().IsRegular() || info.Mode().Perm() != mode || info.Size() != size:
		return false, nil
	}
	have, err := os.Open(to)
	if err != nil {
		return false, nil // an unreadable target is replaced
	}
	defer have.Close()
	same, err := sameContent(have, source)
	if err != nil {
		return false, err
	}
	_, err = source.Seek(0, io.SeekStart)
	return same, err
}

func sameContent(a, b io.Reader) (bool, error) {
	const block = 64 << 10
	left, right := make([]byte, block), make([]byte, block)
	for {
		n, errA := io.ReadFull(a, left)
		m, errB := io.ReadFull(b, right)
		if !bytes.Equal(left[:n], right[:m]) {
			return false, nil
		}
		endA, endB := ended(errA), ended(errB)
		switch {
		case endA && endB:
			return true, nil
		case errA != nil && !endA:
			return false, nil // error of the target: it is replaced
		case errB != nil && !endB:
			return false, errB
		case endA != endB:
			return false, nil
		}
	}
}

func ended(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// replace writes a temporary file in the target's directory and renames it. The mode is set
// before the rename, and the file is closed before it too: a kernel refuses to execute a
// file that is open for writing (ETXTBSY).
func replace(to string, source io.Reader, mode fs.FileMode) error {
	dir, _ := filepath.Split(to)
	temp, err := writeTemporary(to, source, mode)
	if err == nil {
		err = os.Rename(temp, to)
	}
	if err != nil {
		if temp != "" {
			err = errors.Join(err, os.Remove(temp))
		}
		return err
	}
	return syncDir(dir)
}

// writeTemporary returns the path of a complete temporary file; with an error, the path of
// an incomplete one if it exists. A program started meanwhile would inherit the open file
// until it executes, so the lock prevents starting any.
func writeTemporary(to string, source io.Reader, mode fs.FileMode) (path string, _ error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	dir, name := filepath.Split(to)
	f, err := os.CreateTemp(dir, name+tempMark+"*")
	if err != nil {
		return "", err
	}
	return f.Name(), fill(f, source, mode)
}

func fill(f *os.File, source io.Reader, mode fs.FileMode) error {
	_, err := io.Copy(f, source)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(filepath.Clean(dir))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// removeLeftovers removes the temporary files of runs that were killed. Two programs of one
// node never install the same file at the same time: the init container ends before the
// entrypoint starts. A file that cannot be removed does no harm.
func removeLeftovers(to string) {
	dir, name := filepath.Split(to)
	entries, err := os.ReadDir(filepath.Clean(dir))
	if err != nil {
		return
	}
	for _, e := range entries {
		if leftover(e.Name(), name) && e.Type().IsRegular() {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// leftover reports whether a name is that of a temporary file for a file: ours ends with
// digits, upstream's does not.
func leftover(name, of string) bool {
	rest, ok := strings.CutPrefix(name, of+tempMark)
	return ok && strings.Trim(rest, "0123456789") == ""
}

// Programs copies every regular file of a directory except those in skip, and returns the
// paths of all that are installed, in order. A program comes after the files that it
// depends on, which have its name and a suffix (portmap.reference): so an installed program
// always finds them, even if copying stopped half-way.
func Programs(from, to string, skip ...string) (installed []string, err error) {
	entries, err := os.ReadDir(from)
	if err != nil {
		return nil, fmt.Errorf("list files to install: %w", err)
	}
	var wanted []string
	for _, e := range entries {
		if e.Type().IsRegular() && !slices.Contains(skip, e.Name()) {
			wanted = append(wanted, e.Name())
		}
	}
	slices.SortFunc(wanted, programOrder)
	for _, name := range wanted {
		target := filepath.Join(to, name)
		if _, err := Program(filepath.Join(from, name), target); err != nil {
			return installed, err
		}
		installed = append(installed, target)
	}
	return installed, nil
}

// programOrder sorts names part by part between the dots, except that a name comes after
// those that it is a prefix of.
func programOrder(a, b string) int {
	left, right := strings.Split(a, "."), strings.Split(b, ".")
	shared := min(len(left), len(right))
	return cmp.Or(slices.Compare(left[:shared], right[:shared]), cmp.Compare(len(right), len(left)))
}
