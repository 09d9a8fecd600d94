package dist

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	contents "github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"

	"cnictl/tools/release/files"
	"cnictl/tools/release/software"
)

// directories maps directories in archives to those in packages.
var directories = strings.NewReplacer(
	"man/man1/", "/usr/share/man/man1/",
	"completions/bash/", "/usr/share/bash-completion/completions/",
	"completions/zsh/", "/usr/share/zsh/vendor-completions/",
	"completions/fish/", "/usr/share/fish/vendor_completions.d/",
	"completions/powershell/", "/usr/share/doc/cnictl/",
)

// packages adds the Debian and RPM packages.
func (p platform) packages(made map[string][]byte) error {
	dir, err := os.MkdirTemp("", "mkdist-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	list, err := p.installed(dir)
	if err != nil {
		return err
	}
	_, arch, _ := strings.Cut(p.name, "_")
	for _, packager := range []interface {
		nfpm.Packager
		ConventionalExtension() string
	}{deb.Default, rpm.DefaultRPM} {
		info := nfpm.WithDefaults(&nfpm.Info{
			Name: "cnictl", Arch: arch, Platform: "linux", Version: packageVersion(p.Version), MTime: p.Time,
			Section: "admin", Priority: "optional", Maintainer: "The cnictl authors", Vendor: "The cnictl authors", Homepage: p.Source, License: software.Own,
			Description:  "Show the pod IP addresses of EKS nodes\nShows which addresses of nodes with the Amazon VPC CNI are assigned, cooling and\nfree, what holds a node's warm pool back, and what is wrong. It is read-only.",
			Overridables: nfpm.Overridables{Contents: list, RPM: nfpm.RPM{BuildHost: "localhost", Summary: "Show the pod IP addresses of EKS nodes"}},
		})
		if err := nfpm.PrepareForPackager(info, strings.TrimPrefix(packager.ConventionalExtension(), ".")); err != nil {
			return err
		}
		var out bytes.Buffer
		if err := packager.Package(info, &out); err != nil {
			return err
		}
		made[packager.ConventionalFileName(info)] = out.Bytes()
	}
	return nil
}

// installed writes the files that packages install to a directory, for nfpm to read.
func (p platform) installed(dir string) (contents.Contents, error) {
	all := []files.File{
		{Name: "/usr/bin/cnictl", Mode: 0o755, Data: p.program},
		{Name: "/usr/share/doc/cnictl/copyright", Mode: 0o644, Data: p.terms},
		{Name: "/usr/share/doc/cnictl/sbom.cdx.json", Mode: 0o644, Data: p.bom},
	}
	for _, f := range p.shared {
		switch name := directories.Replace(f.Name); {
		case f.Name == "LICENSE": // the copyright file has it
			continue
		case strings.HasPrefix(f.Name, "man/"):
			zipped, err := zip(f.Data)
			if err != nil {
				return nil, err
			}
			f.Name, f.Data = name+".gz", zipped
		case strings.HasPrefix(name, "/"):
			f.Name = name
		default:
			f.Name = "/usr/bin/" + name
		}
		all = append(all, f)
	}
	var out contents.Contents
	for _, f := range all {
		c := &contents.Content{Destination: f.Name, FileInfo: &contents.ContentFileInfo{Owner: "root", Group: "root", Mode: os.FileMode(f.Mode), MTime: p.Time}}
		if f.Link != "" {
			c.Source, c.Type = f.Link, "symlink"
		} else {
			c.Source = filepath.Join(dir, filepath.FromSlash(f.Name))
			if err := os.MkdirAll(filepath.Dir(c.Source), 0o755); err != nil {
				return nil, err
			}
			if err := os.WriteFile(c.Source, f.Data, 0o644); err != nil {
				return nil, err
			}
		}
		out = append(out, c)
	}
	return out, nil
}

func zip(data []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

var (
	semantic = regexp.MustCompile(`^v?[0-9]+\.[0-9]+\.[0-9]+`)
	odd      = regexp.MustCompile(`[^0-9A-Za-z.]+`)
)

// packageVersion returns a version that packages can have: that of an untagged commit sorts
// before every release.
func packageVersion(version string) string {
	if semantic.MatchString(version) {
		return version
	}
	return "0.0.0-" + odd.ReplaceAllString(version, ".")
}
