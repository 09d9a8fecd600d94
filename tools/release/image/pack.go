package image

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"cnictl/tools/release/files"
	"cnictl/tools/release/software"
)

// Release holds what all images of a release share.
type Release struct {
	Version, Revision, Source string
	Time                      time.Time // of the revision
	License                   string    // text of the project's own licence
	Inventory                 func() *software.Inventory
}

const certificates = "etc/ssl/certs/ca-certificates.crt"

// SBOMFile is the path of the bill of materials in an image.
const SBOMFile = "licenses/sbom.cdx.json"

// build makes the image for one architecture.
func (i Image) build(r Release, arch string) (v1.Image, error) {
	inventory := r.Inventory()
	base, err := i.others(inventory, arch)
	if err != nil {
		return nil, err
	}
	programs, err := i.programs(inventory, arch)
	if err != nil {
		return nil, err
	}
	bom, err := inventory.SBOM(software.Subject{Kind: "container", Name: i.Name, Version: r.Version, License: software.Own, Time: r.Time})
	if err != nil {
		return nil, err
	}
	terms := []files.File{{Name: SBOMFile, Mode: 0o644, Data: bom}}
	for name, text := range inventory.Bundle(r.License) {
		terms = append(terms, files.File{Name: "licenses/" + name, Mode: 0o644, Data: []byte(text)})
	}
	if i.Licenses != "" {
		text, err := i.licenses(r, inventory, arch)
		if err != nil {
			return nil, err
		}
		terms = append(terms, files.File{Name: i.Licenses[1:], Mode: 0o644, Data: []byte(text)})
	}

	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	image = mutate.ConfigMediaType(image, types.OCIConfigJSON)
	for _, entries := range [][]files.File{base, programs, terms} {
		if len(entries) == 0 {
			continue
		}
		l, err := layer(entries)
		if err != nil {
			return nil, err
		}
		if image, err = mutate.Append(image, mutate.Addendum{Layer: l, MediaType: types.OCILayer}); err != nil {
			return nil, err
		}
	}
	return mutate.ConfigFile(image, i.config(r, image, arch))
}

// others returns the programs, libraries and certificates of other projects.
func (i Image) others(inventory *software.Inventory, arch string) ([]files.File, error) {
	if i.Root == "" {
		return nil, nil
	}
	root := expand(i.Root, arch)
	if err := inventory.AddDebian(root); err != nil {
		return nil, fmt.Errorf("%w; run: tools/release/rootfs.sh", err)
	}
	entries, err := files.Tree(root)
	if err != nil || !i.Certs {
		return append(entries, files.File{Name: "licenses/debian", Mode: 0o777, Link: "../usr/share/doc"}), err
	}
	inventory.Packages = slices.DeleteFunc(inventory.Packages, func(p software.Package) bool { return p.Name != "ca-certificates" })
	entries = slices.DeleteFunc(entries, func(e files.File) bool {
		return e.Name != certificates && !strings.HasPrefix(e.Name, "usr/share/doc/ca-certificates/") && e.Name != software.StatusDir+"/ca-certificates"
	})
	return append(entries, files.File{Name: "licenses/debian", Mode: 0o777, Link: "../usr/share/doc"}), nil
}

// programs returns the files that the list names.
func (i Image) programs(inventory *software.Inventory, arch string) ([]files.File, error) {
	sources, err := i.sources(arch)
	if err != nil {
		return nil, err
	}
	var out []files.File
	for _, s := range sources {
		e, err := files.Read(s.from, s.name)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
		if isELF(e.Data) {
			if err := inventory.Add(s.name, s.from); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func isELF(data []byte) bool { return strings.HasPrefix(string(data[:min(4, len(data))]), "\x7fELF") }

// licenses returns the content of i.Licenses.
func (i Image) licenses(r Release, own *software.Inventory, arch string) (string, error) {
	all := r.Inventory()
	for key, m := range own.Modules {
		all.Modules[key] = m
	}
	for _, file := range i.Also {
		if err := all.Add(filepath.Base(file), expand(file, arch)); err != nil {
			return "", err
		}
	}
	return all.Text(r.License), nil
}

// config sets what a container runtime reads.
func (i Image) config(r Release, image v1.Image, arch string) *v1.ConfigFile {
	c, err := image.ConfigFile()
	if err != nil { // cannot fail: the image is in memory
		panic(err)
	}
	c = c.DeepCopy()
	c.Architecture, c.OS, c.Created = arch, "linux", v1.Time{Time: r.Time.UTC()}
	for n := range c.History {
		c.History[n] = v1.History{Created: c.Created, CreatedBy: "mkimage"}
	}
	c.Config = v1.Config{WorkingDir: i.Workdir, Entrypoint: i.Entrypoint, Cmd: i.Cmd, Labels: map[string]string{
		"org.opencontainers.image.title":    i.Title,
		"org.opencontainers.image.version":  r.Version,
		"org.opencontainers.image.revision": r.Revision,
		"org.opencontainers.image.source":   r.Source,
		"org.opencontainers.image.licenses": software.Own,
		"org.opencontainers.image.created":  r.Time.UTC().Format(time.RFC3339),
	}}
	for name, value := range c.Config.Labels {
		if value == "" {
			delete(c.Config.Labels, name)
		}
	}
	if i.Path != "" {
		c.Config.Env = []string{"PATH=" + i.Path}
	}
	return c
}

// Pack writes the archive of an image, called name, for the given architectures.
func (i Image) Pack(r Release, name string, archs []string, file string) error {
	if len(archs) == 0 {
		return errors.New("no architecture")
	}
	var built []v1.Image
	for _, arch := range archs {
		image, err := i.build(r, arch)
		if err != nil {
			return fmt.Errorf("pack image %s for %s: %w", i.Name, arch, err)
		}
		built = append(built, image)
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := write(f, name, archs, built); err != nil {
		return errors.Join(fmt.Errorf("pack image %s: %w", i.Name, err), f.Close())
	}
	return f.Close()
}
