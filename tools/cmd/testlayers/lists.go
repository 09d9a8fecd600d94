package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// checkLists compares the lists of required tests and fuzz targets with what the test files
// declare, or rewrites both lists. It runs no tests, so it finds an unlisted test within a
// second.
func checkLists(w io.Writer, o options, pkgs []pkg) error {
	tests, err := readRequired(o.root)
	if err != nil {
		return err
	}
	targets, err := readFuzzList(o.root)
	if err != nil {
		return err
	}
	gated := gatedTests(pkgs)
	if o.update {
		tests, targets = updateRequired(tests, gated, nil), targets.update(pkgs)
		for path, data := range map[string][]byte{requiredList: tests.format(), requiredFuzz: targets.format()} {
			if err := os.WriteFile(filepath.Join(o.root, path), data, 0o644); err != nil {
				return fmt.Errorf("write list: %w", err)
			}
		}
	}
	problems := append(compareRequired(tests, gated, nil, o.strict), targets.compare(pkgs)...)
	for _, p := range problems {
		fmt.Fprintln(w, "lists:", p)
	}
	fmt.Fprintf(w, "lists: %d required tests, %d fuzz targets, %d listed wrongly\n", len(tests), len(targets), len(problems))
	if len(problems) > 0 {
		return errFailed
	}
	return nil
}
