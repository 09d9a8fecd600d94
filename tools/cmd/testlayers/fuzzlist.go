package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const requiredFuzz = "testenv/required-fuzz.txt"

// fuzzList maps the fuzz targets that must exist to the kind of input they read.
type fuzzList map[testID]string

// readFuzzList reads the committed list; without one nothing is required.
func readFuzzList(root string) (fuzzList, error) {
	data, err := os.ReadFile(filepath.Join(root, requiredFuzz))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read list of required fuzz targets: %w", err)
	}
	return parseFuzzList(data)
}

func parseFuzzList(data []byte) (fuzzList, error) {
	list := fuzzList{}
	for i, line := range strings.Split(string(data), "\n") {
		f := strings.Fields(line)
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		if len(f) != 3 {
			return nil, fmt.Errorf("%s line %d: want \"KIND PACKAGE TARGET\", have %q", requiredFuzz, i+1, line)
		}
		list[testID{f[1], f[2]}] = f[0]
	}
	return list, nil
}

// missing says which targets of the list are gone.
func (l fuzzList) missing(pkgs []pkg) []string {
	have := map[testID]bool{}
	for _, p := range pkgs {
		for _, name := range p.Fuzz {
			have[testID{p.ImportPath, name}] = true
		}
	}
	var problems []string
	for id, kind := range l {
		if !have[id] {
			problems = append(problems, fmt.Sprintf("%s %s (%s) is in %s but no longer exists", id.Package, id.Test, kind, requiredFuzz))
		}
	}
	slices.Sort(problems)
	return problems
}
