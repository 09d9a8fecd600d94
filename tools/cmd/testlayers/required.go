package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const requiredHeader = `# Tests that need root, a kernel feature or built binaries, and must run in CI.
# Written by "make lists" and "make test UPDATE=1"; "make verify" compares it with the
# tree, and every "make test" with what ran.
# "run" = must run; "skip" = known to be skipped where CI runs (and must not start
# to run unnoticed).
`

// required maps each gated test to "run" or "skip".
type required map[testID]string

func parseRequired(data []byte) (required, error) {
	req := required{}
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Fields(line)
		if len(f) != 3 || (f[0] != "run" && f[0] != "skip") {
			return nil, fmt.Errorf("%s line %d: want \"run|skip PACKAGE TEST\", have %q", requiredList, i+1, line)
		}
		req[testID{f[1], f[2]}] = f[0]
	}
	return req, nil
}

func (r required) format() []byte {
	var lines []string
	for id, what := range r {
		lines = append(lines, fmt.Sprintf("%-4s %s %s\n", what, id.Package, id.Test))
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[5:], b[5:]) })
	var b bytes.Buffer
	b.WriteString(requiredHeader)
	for _, l := range lines {
		b.WriteString(l)
	}
	return b.Bytes()
}

// readRequired reads the committed list; if there is none, nothing is required.
func readRequired(root string) (required, error) {
	data, err := os.ReadFile(filepath.Join(root, requiredList))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read list of required tests: %w", err)
	}
	return parseRequired(data)
}

// gatedTests maps the tests of pkgs that need root, a kernel feature or built binaries
// to their layer.
func gatedTests(pkgs []pkg) map[testID]string {
	gated := map[testID]string{}
	for _, p := range pkgs {
		for _, t := range p.Gated {
			gated[testID{p.ImportPath, t}] = p.layer
		}
	}
	return gated
}

// checkRequired compares the list with the gated tests of the tree, and with their results in
// the layers that ran, or rewrites the list. It returns the problems.
func checkRequired(o options, pkgs []pkg, results []layerResult) ([]string, error) {
	req, err := readRequired(o.root)
	if err != nil {
		return nil, err
	}
	ran := map[string]map[testID]string{}
	for _, r := range results {
		if r.name != "race" {
			ran[r.name] = r.status
		}
	}
	gated := gatedTests(pkgs)
	if o.update {
		return nil, os.WriteFile(filepath.Join(o.root, requiredList), updateRequired(req, gated, ran).format(), 0o644)
	}
	return compareRequired(req, gated, ran, o.strict), nil
}

// updateRequired lists every gated test. A test that did not run keeps its line; without one
// it must run.
func updateRequired(old required, gated map[testID]string, ran map[string]map[testID]string) required {
	out := required{}
	for id, layer := range gated {
		what, listed := old[id]
		switch status := ran[layer][id]; {
		case status == "skip":
			out[id] = "skip"
		case status != "" || !listed:
			out[id] = "run"
		default:
			out[id] = what
		}
	}
	return out
}

// compareRequired returns the problems of the list, for all layers, and of the tests in the
// layers that ran (layer → test → result).
func compareRequired(req required, gated map[testID]string, ran map[string]map[testID]string, strict bool) []string {
	var problems []string
	add := func(id testID, text string) {
		problems = append(problems, fmt.Sprintf("%s %s %s", id.Package, id.Test, text))
	}
	for id := range req {
		if _, ok := gated[id]; !ok {
			add(id, "is in "+requiredList+" but no longer exists (make lists)")
		}
	}
	for id, layer := range gated {
		what, listed := req[id]
		if !listed {
			add(id, "is not in "+requiredList+" (make lists)")
			continue
		}
		status, layerRan := ran[layer]
		if !layerRan {
			continue
		}
		switch got := status[id]; {
		case got == "" && strict:
			add(id, "must run but did not")
		case what == "run" && got == "skip" && strict:
			add(id, "must run but was skipped")
		case what == "skip" && got == "pass":
			add(id, "is listed as skipped but ran (make test UPDATE=1)")
		}
	}
	slices.Sort(problems)
	return problems
}
