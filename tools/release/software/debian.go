package software

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Package is an installed Debian package.
type Package struct {
	Name, Version, Arch string
	Source              string // name and version of the source package
}

// StatusDir has a file for each package of a root without dpkg; scanners look there.
const StatusDir = "var/lib/dpkg/status.d"

// AddDebian reads the packages that a root file system consists of.
func (i *Inventory) AddDebian(root string) error {
	dir := filepath.Join(root, filepath.FromSlash(StatusDir))
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		fields := map[string]string{}
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, " ") {
				fields[name] = strings.TrimSpace(value)
			}
		}
		p := Package{Name: fields["Package"], Version: fields["Version"], Arch: fields["Architecture"], Source: fields["Source"]}
		if p.Name == "" || p.Version == "" {
			return fmt.Errorf("%s does not name a package and its version", filepath.Join(dir, f.Name()))
		}
		i.Packages = append(i.Packages, p)
	}
	return nil
}
