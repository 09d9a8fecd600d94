package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestCheckLists checks the lists of a tree, repairs them and checks again.
func TestCheckLists(t *testing.T) {
	t.Parallel()
	dir := writeModule(t, "")
	if err := os.WriteFile(filepath.Join(dir, requiredFuzz), []byte("bytes m/a FuzzGone\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	pkgs, err := listPackages(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	o := options{root: dir, lists: true}
	var said bytes.Buffer
	err = checkLists(&said, o, pkgs)
	const wrong = "lists: m/b TestKernel is not in testenv/required-tests.txt (make lists)\n" +
		"lists: m/a FuzzA is not in testenv/required-fuzz.txt (make lists)\n" +
		"lists: m/a FuzzGone (bytes) is in testenv/required-fuzz.txt but no longer exists (make lists)\n" +
		"lists: 0 required tests, 1 fuzz targets, 3 listed wrongly\n"
	if !errors.Is(err, errFailed) || said.String() != wrong {
		t.Errorf("%v, said:\n%s", err, said.String())
	}
	said.Reset()
	o.update = true
	if err := checkLists(&said, o, pkgs); err != nil || said.String() != "lists: 1 required tests, 1 fuzz targets, 0 listed wrongly\n" {
		t.Errorf("mended: %v, said:\n%s", err, said.String())
	}
	o.update = false
	if err := run(t.Context(), o); err != nil {
		t.Errorf("after that: %v", err)
	}
}
