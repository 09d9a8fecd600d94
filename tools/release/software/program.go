// Package software determines what a release consists of: the modules that Go linked into its
// programs, the Debian packages beside them, and the licences of both.
package software

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/module"
)

// Module is a Go module, or the standard library with the path "std".
type Module struct {
	Path, Version string
	License       string   // SPDX expression
	Texts         []string // licences and notices, unchanged
}

// Program is a built Go program.
type Program struct {
	Name    string // name as installed
	Command string // import path
	SHA256  string
	Modules []string // path@version, sorted
}

// Inventory is everything found in the programs added.
type Inventory struct {
	cache, root string // directories: the module cache; Go's own
	Programs    []Program
	Modules     map[string]*Module // by path@version
	Packages    []Package
}

// Key identifies a module: path@version.
func (m *Module) Key() string { return m.Path + "@" + m.Version }

// New returns an empty inventory. moduleCache and goRoot are the directories that "go env"
// prints; licences are read from there.
func New(moduleCache, goRoot string) *Inventory {
	return &Inventory{cache: moduleCache, root: goRoot, Modules: map[string]*Module{}}
}

// Add reads a program. It ignores files that Go did not build: their packages cover them.
func (i *Inventory) Add(name, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the modules of %s: %w", file, err)
	}
	sum := sha256.Sum256(data)
	p := Program{Name: name, Command: info.Path, SHA256: hex.EncodeToString(sum[:])}
	linked := []*Module{{Path: "std", Version: info.GoVersion}}
	deps := info.Deps
	if module.CheckPath(info.Main.Path) == nil { // third-party; our module has no path to fetch it by
		deps = append(deps, &info.Main)
	}
	for _, d := range deps {
		if d.Replace != nil {
			d = d.Replace
		}
		linked = append(linked, &Module{Path: d.Path, Version: d.Version})
	}
	for _, m := range linked {
		if i.Modules[m.Key()] == nil {
			if err := i.license(m); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			i.Modules[m.Key()] = m
		}
		p.Modules = append(p.Modules, m.Key())
	}
	slices.Sort(p.Modules)
	i.Programs = append(i.Programs, p)
	return nil
}

// Sorted returns the modules by path and version.
func (i *Inventory) Sorted() []*Module {
	var out []*Module
	for _, m := range i.Modules {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b *Module) int { return cmp.Compare(a.Key(), b.Key()) })
	return out
}

// dir returns the directory of a module's sources, as the build unpacked them.
func (i *Inventory) dir(m *Module) (string, error) {
	if m.Path == "std" {
		return i.root, nil
	}
	path, err := module.EscapePath(m.Path)
	if err != nil {
		return "", err
	}
	version, err := module.EscapeVersion(m.Version)
	if err != nil {
		return "", err
	}
	return filepath.Join(i.cache, filepath.FromSlash(path)+"@"+version), nil
}

// Bundle returns the licence files of everything, by their names below /licenses. ours is the
// licence of the project itself.
func (i *Inventory) Bundle(ours string) map[string]string {
	out := map[string]string{"LICENSE": ours}
	for _, m := range i.Sorted() {
		for n, text := range m.Texts {
			name := m.Key() + "/LICENSE"
			if n > 0 {
				name += fmt.Sprintf(".%d", n+1)
			}
			out[name] = text
		}
	}
	return out
}

// Text returns the bundle as a single file, for places with room for only one.
func (i *Inventory) Text(ours string) string {
	var b strings.Builder
	b.WriteString(ours)
	byText := map[string][]string{}
	var texts []string
	for _, m := range i.Sorted() {
		for _, text := range m.Texts {
			if byText[text] == nil {
				texts = append(texts, text)
			}
			byText[text] = append(byText[text], m.Path+" "+m.Version)
		}
	}
	for _, text := range texts {
		fmt.Fprintf(&b, "\n%s\nThe programs contain %s, under these terms:\n\n%s", strings.Repeat("=", 80), strings.Join(byText[text], ", "), text)
	}
	return b.String()
}
