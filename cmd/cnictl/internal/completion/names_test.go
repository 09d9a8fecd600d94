package completion

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKeep(t *testing.T) {
	t.Parallel()
	file := fileOf(filepath.Join(t.TempDir(), "cnictl"), "prod")
	if got := load(file); got.Nodes != nil || got.Pods != nil {
		t.Errorf("names of no file: %v", got)
	}
	keep(file, Names{Nodes: []string{"b", "a", "b", "evil\x1b[2J", "", strings.Repeat("x", maxName+1)}})
	keep(file, Names{Pods: []string{"web/x", "web/y", "app/z"}})
	keep(file, Names{Subnets: []string{"subnet-2", "subnet-1", "subnet-\u202e"}, ENIs: []string{"eni-1", "eni-$(id)"}})
	got := load(file)
	if diff := cmp.Diff(Names{[]string{"a", "b"}, []string{"app/z", "web/x", "web/y"}, []string{"subnet-1", "subnet-2"}, []string{"eni-1"}}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"app", "web"}, got.namespaces()); diff != "" {
		t.Error(diff)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v, want mode 0600", info.Mode(), err)
	}
	left, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(left) != 1 {
		t.Errorf("%v %v, want one file", left, err)
	}
	if fileOf("d", "prod") == fileOf("d", "test") || strings.Contains(file, "prod") {
		t.Error("files of clusters are the same, or reveal the cluster")
	}
}

func TestKeep_NowhereToWrite(t *testing.T) {
	t.Parallel()
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	keep(fileOf(blocked, "prod"), Names{Nodes: []string{"a"}}) // must print nothing
}

// FuzzParse: whatever the file contains, the names are sorted, few and plain.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"nodes":["b","a"]}`, `{"pods":["a/b",""]}`, `[]`, `{"nodes":["\u001b"]}`, `{"subnets":["subnet-1"],"enis":["eni-1","eni 2"]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		n := parse(text)
		for _, names := range [][]string{n.Nodes, n.Pods, n.Subnets, n.ENIs} {
			if len(names) > maxNames || !slices.IsSorted(names) || slices.ContainsFunc(names, func(s string) bool { return !plain(s) }) {
				t.Fatalf("%q", names)
			}
		}
	})
}
