package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// check applies all mutants and type-checks the packages that they change: it takes seconds
// where compiling and linking tests takes minutes.
func check(ctx context.Context, root string, all []mutant) (problems []string, err error) {
	changes := make([]change, len(all))
	dirs := map[string]bool{}
	for i, m := range all {
		if changes[i], err = m.apply(root); err != nil {
			problems = append(problems, fmt.Sprintf("%s does not apply: %v", m.ID, err))
			continue
		}
		if m.Name != "" {
			dirs["./"+m.Place] = true
		}
	}
	if len(dirs) == 0 {
		return problems, nil
	}
	c, err := newCompiler(ctx, root, dirs)
	if err != nil {
		return nil, err
	}
	for i, m := range all {
		if changes[i].path == "" || m.Name == "" {
			continue
		}
		if err := c.check(m.Place, changes[i]); err != nil {
			problems = append(problems, fmt.Sprintf("%s does not compile: %v", m.ID, err))
		}
	}
	return problems, nil
}

type compiler struct {
	root   string
	fset   *token.FileSet
	files  map[string][]*ast.File // by directory below the root
	config types.Config
}

// newCompiler builds the packages, for what they and their imports export.
func newCompiler(ctx context.Context, root string, dirs map[string]bool) (*compiler, error) {
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Export,Module"}
	for d := range dirs {
		args = append(args, d)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, stderr.String())
	}
	exports, version := map[string]string{}, ""
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Export string
			Module             struct {
				Main      bool
				GoVersion string
			}
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("decode go list: %w", err)
		}
		exports[p.ImportPath] = p.Export
		if p.Module.Main {
			version = "go" + p.Module.GoVersion
		}
	}
	fset := token.NewFileSet()
	open := func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("nothing exports %s", path)
		}
		return os.Open(exports[path])
	}
	return &compiler{root: root, fset: fset, files: map[string][]*ast.File{}, config: types.Config{
		GoVersion: version, Importer: importer.ForCompiler(fset, "gc", open), Sizes: types.SizesFor("gc", runtime.GOARCH),
	}}, nil
}

func (c *compiler) check(dir string, with change) error {
	if c.files[dir] == nil {
		files, err := parseDir(c.fset, filepath.Join(c.root, dir))
		if err != nil {
			return err
		}
		c.files[dir] = files
	}
	path := filepath.Join(c.root, with.path)
	changed, err := parser.ParseFile(c.fset, path, with.text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	files := slices.Clone(c.files[dir])
	for i, f := range files {
		if c.fset.Position(f.Pos()).Filename == path {
			files[i] = changed
		}
	}
	if _, err := c.config.Check(dir, c.fset, files, nil); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), c.root+"/"))
	}
	return nil
}
