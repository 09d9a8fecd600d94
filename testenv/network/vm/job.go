package vm

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// job is what the guest runs.
type job struct {
	Program string   `json:"program"` // its path on the machine
	Args    []string `json:"args"`
	Env     []string `json:"env"`
	Dir     string   `json:"dir"`
	Temp    string   `json:"temp"` // where the guest has its tmpfs
	Loader  string   `json:"loader"`
	Ports   []int    `json:"ports"`
	End     string   `json:"end"` // follows what the program prints
}

// result is how the program ended.
type result struct {
	Code  int    `json:"code"`
	Error string `json:"error,omitempty"` // why it did not start
}

// temps are directories that every system has and that contain nothing a test needs, except
// perhaps the checkout or the test binary.
var temps = []string{"/var/tmp", "/mnt", "/srv", "/media"}

// newJob describes the calling program.
func newJob(files Files, program, dir string, args, env []string) (job, error) {
	j := job{Program: program, Args: guestArgs(args), Dir: dir, Loader: files.loader()}
	needed := []string{program, dir, files.dir}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		switch name {
		case "TMPDIR":
			continue
		case "CNI_TEST_BIN", "CNI_TEST_KUBE", cacheVar, "HOME":
			needed = append(needed, value)
		}
		j.Env = append(j.Env, e)
	}
	for _, t := range temps {
		below := func(path string) bool { return path == t || strings.HasPrefix(path, t+"/") }
		if info, err := os.Stat(t); err == nil && info.IsDir() && !slices.ContainsFunc(needed, below) {
			j.Temp = t
			j.Env = append(j.Env, "TMPDIR="+t, insideVar+"="+j.network())
			return j, nil
		}
	}
	return job{}, fmt.Errorf("find a directory for temporary files: none of %v will do", temps)
}

// network is the file that names the network in which the guest's kernel started.
func (j job) network() string { return filepath.Join(j.Temp, "guest-network") }

// guestArgs removes the log file that the go command asks a test binary to write: the guest's
// file system is read-only. Without that file the go command does not cache the result.
func guestArgs(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(a string) bool {
		return strings.HasPrefix(strings.TrimLeft(a, "-"), "test.testlogfile=")
	})
}
