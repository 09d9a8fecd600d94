package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// store keeps the results for one state of the code, so that a run that was interrupted can go
// on: a line of JSON per mutant.
type store struct {
	have map[string]result
	file *os.File
}

// openStore begins anew unless resume is set and the tree is what it was.
func openStore(ctx context.Context, root string, resume bool) (*store, error) {
	state := sha256.New()
	for _, args := range [][]string{{"ls-files", "-s"}, {"diff"}, {"ls-files", "-z", "-o", "--exclude-standard"}} {
		git := exec.CommandContext(ctx, "git", append(args, "--", ".", ":!tools")...) // a mutant's own text counts
		git.Dir = root
		out, err := git.Output()
		if err != nil {
			return nil, fmt.Errorf("git %s: %w", args[0], err)
		}
		_, _ = state.Write(out)
		if !slices.Contains(args, "-z") {
			continue
		}
		for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
			// What cannot be read, such as a repository in this one, is no code that is built.
			if data, err := os.ReadFile(filepath.Join(root, name)); err == nil {
				_, _ = fmt.Fprintf(state, "%q %x\n", name, sha256.Sum256(data))
			}
		}
	}
	path := filepath.Join(root, ".cache", "mutants", fmt.Sprintf("%x.json", state.Sum(nil)[:8]))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	s := &store{have: map[string]result{}}
	if resume {
		data, err := os.ReadFile(path)
		if missing(err) != nil {
			return nil, err
		}
		for dec := json.NewDecoder(bytes.NewReader(data)); ; {
			var r result
			if err := dec.Decode(&r); err == io.EOF {
				break
			} else if err != nil { // cut short
				break
			}
			s.have[r.key()] = r
		}
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	s.file = file
	for _, r := range s.have {
		s.add(r)
	}
	return s, nil
}

func (m mutant) key() string { return fmt.Sprintf("%q", m) }

func (s *store) get(m mutant) (result, bool) {
	r, ok := s.have[m.key()]
	return r, ok && r.Status == killed
}

// add saves a result. One that cannot be saved is made again.
func (s *store) add(r result) {
	if line, err := json.Marshal(r); err == nil {
		_, _ = s.file.Write(append(line, '\n'))
	}
}
