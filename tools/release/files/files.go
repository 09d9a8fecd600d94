// Package files reads the files of a release and writes them as archives whose bytes depend
// on nothing else: names are sorted, all times equal, and owners 0.
package files

import (
	"archive/tar"
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// File is a file, a symbolic link or a directory.
type File struct {
	Name string // without a leading slash
	Mode int64
	Data []byte
	Link string // target
	Dir  bool
}

// Tree reads a directory. Modes are 0755 for directories and executables, else 0644. It
// rejects devices, sockets, and setuid or setgid files.
func Tree(root string) ([]File, error) {
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, err
	}
	var out []File
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() { // Tar adds directories
			return err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		e, err := Read(file, filepath.ToSlash(name))
		out = append(out, e)
		return err
	})
	return out, err
}

// Read makes a File from a file or symbolic link.
func Read(file, name string) (File, error) {
	info, err := os.Lstat(file)
	if err != nil {
		return File{}, err
	}
	e := File{Name: name, Mode: 0o644}
	switch mode := info.Mode(); {
	case mode&(fs.ModeSetuid|fs.ModeSetgid) != 0:
		return e, fmt.Errorf("%s changes the user who starts it", file)
	case mode&fs.ModeSymlink != 0:
		e.Mode = 0o777
		e.Link, err = os.Readlink(file)
	case mode.IsRegular():
		if mode&0o111 != 0 {
			e.Mode = 0o755
		}
		e.Data, err = os.ReadFile(file)
	default:
		return e, fmt.Errorf("%s is neither a file nor a symbolic link", file)
	}
	return e, err
}

// withParents adds the directories of the files, and sorts.
func withParents(list []File) []File {
	have := map[string]bool{}
	out := slices.Clone(list)
	for _, e := range list {
		for dir := path.Dir(e.Name); dir != "." && !have[dir]; dir = path.Dir(dir) {
			have[dir] = true
			out = append(out, File{Name: dir, Mode: 0o755, Dir: true})
		}
	}
	slices.SortFunc(out, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Tar writes files and the directories that contain them, sorted and with the same time.
func Tar(w io.Writer, list []File, when time.Time) error {
	t := tar.NewWriter(w)
	for _, e := range withParents(list) {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.Name, Mode: e.Mode, Size: int64(len(e.Data)), ModTime: when}
		switch {
		case e.Dir:
			h.Typeflag, h.Name = tar.TypeDir, e.Name+"/"
		case e.Link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.Link
		}
		if err := t.WriteHeader(h); err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
		if _, err := t.Write(e.Data); err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	return t.Close()
}
