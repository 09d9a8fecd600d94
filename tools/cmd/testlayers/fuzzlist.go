package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const requiredFuzz = "testenv/required-fuzz.txt"

const fuzzHeader = `# The fuzz targets, each with the kind of input that it reads ("property": no outside
# input; "other": added by "make lists", set the kind by hand). "make verify", "make test"
# and "make fuzz" fail if one no longer exists or is not listed.
# KIND PACKAGE TARGET
`

// fuzzList maps fuzz targets to the kind of input that they read.
type fuzzList map[testID]string

// readFuzzList reads the committed list; if there is none, nothing is required.
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

// fuzzTargets returns the targets in the tree.
func fuzzTargets(pkgs []pkg) map[testID]bool {
	have := map[testID]bool{}
	for _, p := range pkgs {
		for _, name := range p.Fuzz {
			have[testID{p.ImportPath, name}] = true
		}
	}
	return have
}

// compare reports the listed targets that are gone, and the targets in the tree that are not
// listed.
func (l fuzzList) compare(pkgs []pkg) []string {
	have := fuzzTargets(pkgs)
	var problems []string
	for id, kind := range l {
		if !have[id] {
			problems = append(problems, fmt.Sprintf("%s %s (%s) is in %s but no longer exists (make lists)", id.Package, id.Test, kind, requiredFuzz))
		}
	}
	for id := range have {
		if _, ok := l[id]; !ok {
			problems = append(problems, fmt.Sprintf("%s %s is not in %s (make lists)", id.Package, id.Test, requiredFuzz))
		}
	}
	slices.Sort(problems)
	return problems
}

// update lists exactly the targets of pkgs; new ones have no kind yet.
func (l fuzzList) update(pkgs []pkg) fuzzList {
	out := fuzzList{}
	for id := range fuzzTargets(pkgs) {
		out[id] = cmp.Or(l[id], "other")
	}
	return out
}

func (l fuzzList) format() []byte {
	var lines []string
	for id, kind := range l {
		lines = append(lines, fmt.Sprintf("%-14s %s %s\n", kind, id.Package, id.Test))
	}
	slices.Sort(lines)
	return []byte(fuzzHeader + strings.Join(lines, ""))
}
