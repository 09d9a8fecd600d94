package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// entry is a file, a symbolic link or a directory of a layer.
type entry struct {
	name string // without a slash before it
	mode int64
	data []byte
	link string // target
	dir  bool
}

// epoch is the time of every file.
var epoch = time.Unix(0, 0).UTC()

// tree reads a directory. Modes are 0755 for directories and what can be executed, else
// 0644; devices, sockets and what changes the user are refused.
func tree(root string) ([]entry, error) {
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, err
	}
	var out []entry
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() { // directories are added by withParents
			return err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		e, err := read(file, filepath.ToSlash(name))
		out = append(out, e)
		return err
	})
	return out, err
}

// read makes an entry from a file or symbolic link.
func read(file, name string) (entry, error) {
	info, err := os.Lstat(file)
	if err != nil {
		return entry{}, err
	}
	e := entry{name: name, mode: 0o644}
	switch mode := info.Mode(); {
	case mode&(fs.ModeSetuid|fs.ModeSetgid) != 0:
		return e, fmt.Errorf("%s changes the user who starts it", file)
	case mode&fs.ModeSymlink != 0:
		e.mode = 0o777
		e.link, err = os.Readlink(file)
	case mode.IsRegular():
		if mode&0o111 != 0 {
			e.mode = 0o755
		}
		e.data, err = os.ReadFile(file)
	default:
		return e, fmt.Errorf("%s is neither a file nor a symbolic link", file)
	}
	return e, err
}

// withParents adds the directories of entries and sorts.
func withParents(entries []entry) []entry {
	have := map[string]bool{}
	out := slices.Clone(entries)
	for _, e := range entries {
		for dir := path.Dir(e.name); dir != "." && !have[dir]; dir = path.Dir(dir) {
			have[dir] = true
			out = append(out, entry{name: dir, mode: 0o755, dir: true})
		}
	}
	slices.SortFunc(out, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	return out
}

// archive writes entries as a tar.
func archive(w io.Writer, entries []entry) error {
	t := tar.NewWriter(w)
	for _, e := range entries {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Size: int64(len(e.data)), ModTime: epoch}
		switch {
		case e.dir:
			h.Typeflag, h.Name = tar.TypeDir, e.name+"/"
		case e.link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		}
		if err := t.WriteHeader(h); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		if _, err := t.Write(e.data); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	return t.Close()
}

// layer makes an image's layer of entries.
func layer(entries []entry) (v1.Layer, error) {
	var data bytes.Buffer
	if err := archive(&data, withParents(entries)); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}
