package node

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxFile bounds a file that is read as a whole.
const maxFile = 4 << 20

var errIrregular = errors.New("not a regular file")

// path returns where a file of the host is. In the container aws-node, the host's directories are
// mounted below /host.
func (c *collector) path(name string) string {
	if c.contained {
		if mounted := filepath.Join(c.Root, "/host", name); exists(mounted) {
			return mounted
		}
	}
	return filepath.Join("/", c.Root, name)
}

func (c *collector) exists(name string) bool { return exists(filepath.Join("/", c.Root, name)) }

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// open opens a regular file of the host. It does not block on a FIFO.
func (c *collector) open(name string) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(c.path(name), os.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w", name, errIrregular)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// read reads a whole file of the host.
func (c *collector) read(name string) ([]byte, error) { return c.readWithin(name, maxFile) }

func (c *collector) readWithin(name string, limit int64) ([]byte, error) {
	f, _, err := c.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s has more than %d MiB", name, limit>>20)
	}
	return data, err
}

// maxEntries bounds how many entries of a directory are read.
const maxEntries = 10_000

// list returns the entries of a directory of the host, sorted.
func (c *collector) list(name string) ([]fs.DirEntry, error) {
	f, err := os.OpenFile(c.path(name), os.O_RDONLY|unix.O_NONBLOCK|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(maxEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	sortEntries(entries)
	return entries, nil
}

func sortEntries(entries []fs.DirEntry) {
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
}

// ignore drops an error that only means that something has gone.
func ignore(err, gone error) error {
	if errors.Is(err, gone) {
		return nil
	}
	return err
}
