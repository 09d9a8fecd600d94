// Package image packs container images from built programs, as the lists in deploy/images and
// testenv/kube/cluster describe them. The same inputs produce the same bytes: names are sorted,
// times fixed, and owners 0.
package image

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Image describes the content of an image. {arch} in a path on this machine is Go's name of
// the architecture.
type Image struct {
	Name       string
	Title      string
	Workdir    string
	Entrypoint []string
	Cmd        []string
	Path       string            // directories for PATH
	Root       string            // file system of third-party software, made by tools/release/rootfs.sh
	Certs      bool              // take only the CA certificates from Root
	Files      map[string]string // path in the image: path here. With trailing slashes, a whole directory
	// Licenses is a file with the licence terms of everything in the image and in Also, for
	// programs that are copied to places without /licenses.
	Licenses string
	Also     []string
}

// ReadList reads a list of images.
func ReadList(file string) ([]Image, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out []Image
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&out); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, i := range out {
		if i.Name == "" || len(i.Entrypoint)+len(i.Cmd) == 0 {
			return nil, fmt.Errorf("%s: an image has no name or nothing to run", file)
		}
	}
	return out, nil
}

// source is a file of an image and the path of its content.
type source struct{ name, from string }

// sources lists the files for an architecture, by name without a leading slash. A file that
// is named explicitly replaces one from a directory.
func (i Image) sources(arch string) ([]source, error) {
	found := map[string]string{}
	for name, from := range i.Files {
		if !strings.HasSuffix(name, "/") {
			continue
		}
		dir := expand(from, arch)
		files, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			if info, err := f.Info(); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
				return nil, fmt.Errorf("%s is not a program", filepath.Join(dir, f.Name()))
			}
			found[name+f.Name()] = filepath.Join(dir, f.Name())
		}
	}
	for name, from := range i.Files {
		if !strings.HasSuffix(name, "/") {
			found[name] = expand(from, arch)
		}
	}
	var out []source
	for name, from := range found {
		if !strings.HasPrefix(name, "/") {
			return nil, errors.New(name + " is not an absolute path")
		}
		out = append(out, source{name[1:], from})
	}
	slices.SortFunc(out, func(a, b source) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

func expand(path, arch string) string { return strings.ReplaceAll(path, "{arch}", arch) }
