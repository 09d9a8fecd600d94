// Package images has the list of the container images (images.yaml), which tools/release
// packs, the script that the init image installs on nodes, and a reader for the image
// archives, for tests of their contents.
package images

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Image is one architecture of an image, as a runtime sees it.
type Image struct {
	Name         string // including the tag
	Architecture string
	OS           string
	Config       struct {
		User            string
		WorkingDir      string
		Entrypoint, Cmd []string
		Env             []string
		Labels          map[string]string
	}
	Files map[string]File // by path, without a leading slash
}

// File is a file or symbolic link of an image.
type File struct {
	Mode fs.FileMode
	UID  int
	Link string // target
	Data []byte
}

// descriptor points to a blob of the archive.
type descriptor struct {
	Digest      string
	Annotations map[string]string
}

// Read reads an OCI archive built by make images.
func Read(file string) ([]Image, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	blobs := map[string][]byte{}
	if err := each(f, func(h *tar.Header, data []byte) { blobs[h.Name] = data }); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var top, index struct{ Manifests []descriptor }
	if err := json.Unmarshal(blobs["index.json"], &top); err != nil {
		return nil, fmt.Errorf("%s: index.json: %w", file, err)
	}
	if n := len(top.Manifests); n != 1 {
		return nil, fmt.Errorf("%s has %d images, want one", file, n)
	}
	blob := func(d descriptor) []byte { return blobs["blobs/"+strings.Replace(d.Digest, ":", "/", 1)] }
	if err := json.Unmarshal(blob(top.Manifests[0]), &index); err != nil {
		return nil, fmt.Errorf("%s: index: %w", file, err)
	}
	var out []Image
	for _, m := range index.Manifests {
		var manifest struct {
			Config descriptor
			Layers []descriptor
		}
		i := Image{Name: top.Manifests[0].Annotations["io.containerd.image.name"], Files: map[string]File{}}
		if err := json.Unmarshal(blob(m), &manifest); err != nil {
			return nil, fmt.Errorf("%s: manifest: %w", file, err)
		}
		if err := json.Unmarshal(blob(manifest.Config), &i); err != nil {
			return nil, fmt.Errorf("%s: config: %w", file, err)
		}
		for _, l := range manifest.Layers {
			if err := i.add(blob(l)); err != nil {
				return nil, fmt.Errorf("%s: layer %s: %w", file, l.Digest, err)
			}
		}
		out = append(out, i)
	}
	return out, nil
}

func (i *Image) add(layer []byte) error {
	unzipped, err := gzip.NewReader(bytes.NewReader(layer))
	if err != nil {
		return err
	}
	return each(unzipped, func(h *tar.Header, data []byte) {
		if h.Typeflag != tar.TypeDir {
			i.Files[h.Name] = File{Mode: h.FileInfo().Mode(), UID: h.Uid + h.Gid, Link: h.Linkname, Data: data}
		}
	})
}

func each(r io.Reader, f func(*tar.Header, []byte)) error {
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		data, err := io.ReadAll(t)
		if err != nil {
			return err
		}
		f(h, data)
	}
}

// Unpack writes the files of an image into a directory.
func (i *Image) Unpack(dir string) error {
	for name, f := range i.Files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		var err error
		if f.Link != "" {
			err = os.Symlink(f.Link, path)
		} else {
			err = os.WriteFile(path, f.Data, f.Mode.Perm())
		}
		if err != nil {
			return err
		}
	}
	return nil
}
