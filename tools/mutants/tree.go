package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// tree is a copy of the tree under test, in which a mutant is put. An overlay of the go
// command would change Go files alone, and only for the go command that has it: tests also
// read charts and source files, and build programs.
type tree struct{ dir string }

// copyTree links what git knows, and what the build made.
func copyTree(ctx context.Context, root, dir string) (tree, error) {
	git := exec.CommandContext(ctx, "git", "ls-files", "-z", "-c", "-o", "--exclude-standard")
	git.Dir = root
	names, err := git.Output()
	if err != nil {
		return tree{}, fmt.Errorf("git ls-files: %w", err)
	}
	for name := range bytes.SplitSeq(names, []byte{0}) {
		if len(name) == 0 {
			continue
		}
		to := filepath.Join(dir, string(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return tree{}, err
		}
		if err := missing(os.Link(filepath.Join(root, string(name)), to)); err != nil { // missing: not yet removed from git
			return tree{}, err
		}
	}
	for _, built := range []string{"bin", ".cache"} {
		if err := os.Symlink(filepath.Join(root, built), filepath.Join(dir, built)); err != nil {
			return tree{}, err
		}
	}
	return tree{dir}, nil
}

// put changes a file; undo brings back what it was. It must not write through the link.
func (t tree) put(c change) (undo func() error, err error) {
	to, aside := filepath.Join(t.dir, c.path), t.dir+"-before"
	info, err := os.Stat(to)
	if err != nil {
		return nil, err
	}
	if err := os.Rename(to, aside); err != nil {
		return nil, err
	}
	undo = func() error { return os.Rename(aside, to) }
	if err := os.WriteFile(to, c.text, info.Mode().Perm()); err != nil {
		return nil, errors.Join(err, undo())
	}
	return undo, nil
}

func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
