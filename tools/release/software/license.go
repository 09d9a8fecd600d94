package software

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// Own is the project's own licence, as an SPDX expression.
const Own = "Apache-2.0"

// allowed are the licences of Go modules that may be linked into our programs. Each requires
// only that its text is distributed too, which Bundle and Text ensure. MPL-2.0 also requires
// that the source of its files is available; the module proxy provides it.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0"}

// legal matches files with licence terms; a module may have several.
var legal = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|copyright)([-._].*)?$`)

// notTerms matches files with such names that have other content.
var notTerms = regexp.MustCompile(`(?i)\.(go|ya?ml|json|tmpl|sh|py|header)$`)

// ErrLicense means that a licence is not on the list of allowed ones.
var ErrLicense = errors.New("licence is not allowed")

// license fills in the licence terms of a module.
func (i *Inventory) license(m *Module) error {
	dir, err := i.dir(m)
	if err != nil {
		return err
	}
	files, err := terms(dir, m.Path == "std")
	if err != nil {
		return fmt.Errorf("find the licence of %s: %w", m.Key(), err)
	}
	var ids []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		found, err := identify(text)
		if err != nil {
			return fmt.Errorf("%s of %s: %w", file, m.Key(), err)
		}
		ids = append(ids, found...)
		if t := string(text); !slices.Contains(m.Texts, t) {
			m.Texts = append(m.Texts, t)
		}
	}
	if len(ids) == 0 {
		return fmt.Errorf("%s has no licence in %s: %w", m.Key(), dir, ErrLicense)
	}
	slices.Sort(ids)
	m.License = strings.Join(slices.Compact(ids), " AND ")
	return nil
}

// terms lists a module's files with licence terms: its own, and those of code copied from
// others. With ownOnly it skips the latter: Go's tree has licences of things that are not in
// its library.
func terms(root string, ownOnly bool) (out []string, _ error) {
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (ownOnly || skipped(d.Name())):
			return fs.SkipDir
		case d.Type().IsRegular() && legal.MatchString(d.Name()) && !notTerms.MatchString(d.Name()):
			out = append(out, path)
		}
		return nil
	})
	return out, err
}

// skipped reports whether nothing is linked from a directory.
func skipped(dir string) bool {
	return dir == "testdata" || strings.HasPrefix(dir, "_") || strings.HasPrefix(dir, ".")
}

// identify returns the licences in a text; none for notices.
func identify(text []byte) ([]string, error) {
	c := licensecheck.Scan(text)
	var ids []string
	for _, m := range c.Match {
		if m.IsURL || m.ID == "GooglePatentsFile" { // a grant beside the licence: its text is distributed too
			continue
		}
		if !slices.Contains(allowed, m.ID) {
			return nil, fmt.Errorf("%s: %w", m.ID, ErrLicense)
		}
		ids = append(ids, m.ID)
	}
	return ids, nil
}
