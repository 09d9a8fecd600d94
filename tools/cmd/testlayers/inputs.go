package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// This file tells the go command what it cannot see, so that it may keep the results of tests:
// it knows what a test binary links and which files of the module it reads, but not what the
// programs that a test starts are made of, nor which kernel it meets.

// inputsDir has a file per package with the hashes of what its tests use, below the module's
// directory. testenv.Main names it in the go command's log of the package's inputs.
const inputsDir = "bin/inputs"

// inputsVar says that the files in inputsDir are those of this tree. testenv reads it.
const inputsVar = "CNI_TEST_INPUTS"

// gated reports whether the tests of a package use more than what they link and read.
func (p pkg) gated() bool { return p.layer != "pure" || len(p.Uses) > 0 }

// inputs lists what the tests of a package use besides what they link and read: directories of
// the module.
func (p pkg) inputs() []string {
	uses := slices.Clone(p.Uses)
	if p.Imports["testenv/kube/kubeapi"] || p.layer == "cluster" {
		uses = append(uses, "tools/kube")
	}
	if p.Guest { // it writes no log
		uses = append(uses, "tools/vm", p.Rel)
	}
	slices.Sort(uses)
	return slices.Compact(uses)
}

// untold says what is missing for the go command to know what a package's tests use.
func (p pkg) untold() error {
	switch {
	case len(p.Uses) > 0 && !p.hasTests():
		return fmt.Errorf("%s says what its tests use, and has none", p.ImportPath)
	case p.Programs && len(p.Uses) == 0:
		return fmt.Errorf("the tests of %s start programs from CNI_TEST_BIN: say which above TestMain, "+
			"such as //testlayers:uses=cmd/aws-cni", p.ImportPath)
	case len(p.inputs()) > 0 && !p.Tells:
		return fmt.Errorf("the tests of %s use %s, which the go command does not see: call testenv.Run or testenv.Main in TestMain",
			p.ImportPath, strings.Join(p.inputs(), ", "))
	}
	return nil
}

// hasher hashes directories of the module: a command's with all that it links, others with all
// their files.
type hasher struct {
	tree
	read  func(path string) ([]byte, error) // of a path below the module's directory
	files func(dir string) ([]string, error)
	known map[string]string
}

func newHasher(t tree, root string) *hasher {
	return &hasher{tree: t, known: map[string]string{},
		read: func(path string) ([]byte, error) { return os.ReadFile(filepath.Join(root, path)) },
		files: func(dir string) (found []string, err error) {
			err = filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.Type().IsRegular() {
					path, err = filepath.Rel(root, path)
					found = append(found, path)
				}
				return err
			})
			return found, err
		},
	}
}

// hash returns the hash of what a package uses.
func (h *hasher) hash(use string) (string, error) {
	if sum, ok := h.known[use]; ok {
		return sum, nil
	}
	files := h.linked(use)
	if len(files) == 0 {
		var err error
		if files, err = h.files(use); err != nil {
			return "", fmt.Errorf("list files: %w", err)
		}
	}
	slices.Sort(files)
	sum := sha256.New()
	for _, f := range files {
		data, err := h.read(f)
		if errors.Is(err, fs.ErrNotExist) && (f == "go.sum" || f == "Makefile") {
			continue
		}
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %x\n", f, sha256.Sum256(data))
	}
	h.known[use] = fmt.Sprintf("%x", sum.Sum(nil))
	return h.known[use], nil
}

// linked lists the files that a command is built from, or all commands below a directory for
// "cmd/..."; none if it is no command.
func (h *hasher) linked(use string) (files []string) {
	below, all := strings.CutSuffix(use, "/...")
	deps := map[string]bool{}
	for rel, l := range h.packages {
		if l.Name == "main" && (rel == use || all && strings.HasPrefix(rel, below+"/")) {
			deps[rel] = true
			maps.Copy(deps, h.below(l.Deps))
		}
	}
	for dep := range deps {
		for _, f := range h.packages[dep].sources() {
			files = append(files, filepath.Join(dep, f))
		}
	}
	if len(files) > 0 {
		files = append(files, "go.mod", "go.sum", "Makefile") // which has the flags and tags
	}
	return files
}

// sources lists the files that a package is built from, with any build tags.
func (l listed) sources() []string {
	ignored := slices.DeleteFunc(slices.Clone(l.IgnoredGoFiles), func(f string) bool { return strings.HasSuffix(f, "_test.go") })
	return slices.Concat(l.GoFiles, ignored, l.SFiles, l.EmbedFiles)
}

// text returns what a package's file in inputsDir says.
func (h *hasher) text(p pkg, machine string) (string, error) {
	var b strings.Builder
	b.WriteString(machine)
	for _, use := range p.inputs() {
		sum, err := h.hash(use)
		if err != nil {
			return "", fmt.Errorf("hash what %s uses: %w", p.ImportPath, err)
		}
		fmt.Fprintf(&b, "%s  %s\n", sum, use)
	}
	return b.String(), nil
}

// machine describes the kernel and the programs that tests start: the machine's, and those that were
// taken out of Debian's packages of the day.
func machine(ctx context.Context, root string) string {
	output := func(dir, name string, args ...string) string {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			return "none"
		}
		said, _, _ := strings.Cut(string(out), "\n")
		return said
	}
	servers, guest := output(root, "tools/kube/build.sh", "-n"), output(root, "tools/vm/build.sh", "-n")
	var b strings.Builder
	for _, command := range []string{"uname -r -m", "iptables --version", "nft --version", "ip -V", "crun --version", "curl --version",
		"skopeo --version", "go version", servers + "/etcd --version", servers + "/containerd --version",
		guest + "/qemu-system-x86_64 --version", "ls " + guest + "/lib/modules"} {
		words := strings.Fields(command)
		name := words[0]
		if !filepath.IsAbs(name) {
			for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/sbin") {
				if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
					name = path
					break
				}
			}
		}
		fmt.Fprintf(&b, "# %s: %s\n", filepath.Base(words[0]), output(root, name, words[1:]...))
	}
	return b.String()
}

// writeInputs writes the files of inputsDir, and tells the tests.
func (t tree) writeInputs(ctx context.Context, root string) error {
	h, here := newHasher(t, root), machine(ctx, root)
	dir := filepath.Join(root, inputsDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make directory for inputs: %w", err)
	}
	for _, p := range t.pkgs {
		if err := p.untold(); err != nil {
			return err
		}
		if !p.hasTests() || !p.gated() {
			continue
		}
		text, err := h.text(p, here)
		if err != nil {
			return err
		}
		path := filepath.Join(dir, inputsFile(p.Rel))
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return fmt.Errorf("write inputs: %w", err)
		}
		if err := stamp(path, []byte(text)); err != nil {
			return err
		}
	}
	abs, err := filepath.Abs(root)
	if err != nil {
		return fmt.Errorf("find the module: %w", err)
	}
	return os.Setenv(inputsVar, filepath.Join(abs, inputsDir))
}

// inputsFile is the name of a package's file. testenv knows it too.
func inputsFile(rel string) string { return strings.ReplaceAll(rel, "/", "-") + ".txt" }

// stamp gives a file a time that depends on its content alone: the go command compares times and
// sizes, and a new clone has new times. It is years ago, since the go command trusts no file that
// was written a moment ago.
func stamp(path string, content []byte) error {
	sum := sha256.Sum256(content)
	t := time.Unix(int64(1<<29+binary.BigEndian.Uint32(sum[:])>>3), int64(binary.BigEndian.Uint32(sum[4:])%1e9))
	if err := os.Chtimes(path, t, t); err != nil {
		return fmt.Errorf("set the time of a file: %w", err)
	}
	return nil
}

// stampTree gives what was built in bin/ times that depend on its content alone: what is built again
// is the same. With all it does so with the committed files and directories of a checkout, so that the
// go command finds the results of another clone of the same content.
func stampTree(ctx context.Context, root string, all bool) error {
	var files []string
	if all {
		cmd := exec.CommandContext(ctx, "git", "ls-files", "-z")
		cmd.Dir = root
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("list committed files: %w", err)
		}
		files = strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
	}
	built, err := filepath.Glob(filepath.Join(root, "bin", "*"))
	if err != nil {
		return err
	}
	for _, b := range built {
		rel, err := filepath.Rel(root, b)
		if err != nil {
			return err
		}
		files = append(files, rel)
	}
	entries := map[string][]string{}
	for _, f := range files {
		path := filepath.Join(root, f)
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
			continue
		}
		if err != nil {
			return fmt.Errorf("look at a committed file: %w", err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read a committed file: %w", err)
		}
		if err := stamp(path, content); err != nil {
			return err
		}
		for dir, name := filepath.Split(f); ; dir, name = filepath.Split(filepath.Clean(dir)) {
			entries[filepath.Clean(dir)] = append(entries[filepath.Clean(dir)], name)
			if dir == "" {
				break
			}
		}
	}
	for dir, names := range entries {
		slices.Sort(names)
		if err := stamp(filepath.Join(root, dir), []byte(strings.Join(slices.Compact(names), "\x00"))); err != nil {
			return err
		}
	}
	return nil
}
