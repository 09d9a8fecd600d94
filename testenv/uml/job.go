package uml

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// job is what the guest is to run. It lies in a directory that both sides see.
type job struct {
	Args   []string `json:"args"`
	Env    []string `json:"env"`
	Dir    string   `json:"dir"`
	Temp   string   `json:"temp"` // where the guest has its tmpfs
	Loader string   `json:"loader"`
}

const (
	jobFile    = "job.json"
	resultFile = "result.json"
)

// result is how the program ended.
type result struct {
	Code  int    `json:"code"`
	Error string `json:"error,omitempty"` // why it did not start
}

// temps are directories that every system has and that hold nothing which a test needs,
// except perhaps the checkout or the test binary.
var temps = []string{"/var/tmp", "/mnt", "/srv", "/media"}

// newJob describes the calling program. What a sandbox or a guest left in the
// environment is not for the next one.
func newJob(files Files, program, dir string, args, env []string) (job, error) {
	j := job{Args: guestArgs(args), Dir: dir, Loader: files.loader()}
	needed := []string{program, dir, files.dir}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		switch {
		case strings.HasPrefix(name, "CNICTL_TESTENV_") || name == "TMPDIR":
			continue
		case name == "CNI_TEST_BIN" || name == "CNI_TEST_KUBE" || name == cacheVar || name == "HOME":
			needed = append(needed, value)
		}
		j.Env = append(j.Env, e)
	}
	for _, t := range temps {
		below := func(path string) bool { return path == t || strings.HasPrefix(path, t+"/") }
		if info, err := os.Stat(t); err == nil && info.IsDir() && !slices.ContainsFunc(needed, below) {
			j.Temp = t
			return j, nil
		}
	}
	return job{}, fmt.Errorf("find a directory for temporary files: none of %v will do", temps)
}

// guestArgs leaves out what the go command asks a test binary to write: the guest's file
// system is read-only. Without this file the go command does not cache the result.
func guestArgs(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(a string) bool {
		return strings.HasPrefix(strings.TrimLeft(a, "-"), "test.testlogfile=")
	})
}

func write(dir, name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return os.WriteFile(filepath.Join(dir, name), data, 0o600)
}

func read(dir, name string, v any) error {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}
