package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// entry is a file, a symbolic link or a directory of a layer.
type entry struct {
	name string // without a slash before it
	mode int64
	data []byte
	link string // target
	dir  bool
}

// epoch is the time of everything.
var epoch = time.Unix(0, 0).UTC()

// tree reads a directory. Modes are 0755 for directories and what can be executed, else
// 0644; devices, sockets and what changes the user are refused.
func tree(root string) ([]entry, error) {
	var out []entry
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, file)
		if err != nil || name == "." {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		e := entry{name: filepath.ToSlash(name), mode: 0o644}
		switch mode := info.Mode(); {
		case mode&(fs.ModeSetuid|fs.ModeSetgid) != 0 && !mode.IsDir():
			return fmt.Errorf("%s changes the user who starts it", file)
		case mode.IsDir():
			return nil // added by withParents
		case mode&fs.ModeSymlink != 0:
			e.mode = 0o777
			e.link, err = os.Readlink(file)
		case mode.IsRegular():
			if mode&0o111 != 0 {
				e.mode = 0o755
			}
			e.data, err = os.ReadFile(file)
		default:
			return fmt.Errorf("%s is neither file, directory nor symbolic link", file)
		}
		out = append(out, e)
		return err
	})
	return out, err
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

func archive(entries []entry) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Size: int64(len(e.data)), ModTime: epoch, Format: tar.FormatUSTAR}
		switch {
		case e.dir:
			h.Typeflag, h.Name = tar.TypeDir, e.name+"/"
		case e.link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// pack makes the archive of an image.
func (i image) pack(from sources, tag, arch string) ([]byte, error) {
	var files []entry
	var ids, names []string
	for n, layer := range i.layers {
		entries, err := layer(from)
		if err != nil {
			return nil, err
		}
		data, err := archive(withParents(entries))
		if err != nil {
			return nil, err
		}
		ids = append(ids, "sha256:"+digest(data))
		names = append(names, fmt.Sprintf("layer-%d.tar", n+1))
		files = append(files, entry{name: names[n], mode: 0o644, data: data})
	}
	config, err := json.Marshal(map[string]any{
		"architecture": arch, "os": "linux", "created": epoch,
		"config": map[string]any{
			"Entrypoint": []string{path.Join(i.workdir, i.program)}, "WorkingDir": i.workdir,
			"Env": []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"},
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": ids},
	})
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal([]any{map[string]any{
		"Config": "config.json", "RepoTags": []string{"docker.io/cnictl/" + i.name + ":" + tag}, "Layers": names,
	}})
	if err != nil {
		return nil, err
	}
	return archive(append(files, entry{name: "config.json", mode: 0o644, data: config}, entry{name: "manifest.json", mode: 0o644, data: manifest}))
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
