package archtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const crashPackage = "daemon/api/crashpoint"

// TestCrashPoints_DefaultBuild: the file that kills the process exists, and default builds
// leave it out.
func TestCrashPoints_DefaultBuild(t *testing.T) {
	t.Parallel()
	listed, err := list(t.Context(), root, "./"+crashPackage)
	if err != nil {
		t.Fatal(err)
	}
	if len(listed) != 1 || slices.Contains(listed[0].GoFiles, "on.go") || !slices.Contains(listed[0].IgnoredGoFiles, "on.go") {
		t.Fatalf("files of a default build: %+v, want on.go among those left out", listed)
	}
	source, err := os.ReadFile(filepath.Join(root, crashPackage, "on.go"))
	if err != nil {
		t.Fatal(err)
	}
	if text := string(source); !strings.HasPrefix(text, "//go:build "+crashTag+"\n") || !strings.Contains(text, crashMarker) {
		t.Errorf("on.go does not begin with its tag, or lacks %s: fix what this test looks for", crashMarker)
	}
}

// TestCrashPoints_Ignored: the package list names files with a build tag.
func TestCrashPoints_Ignored(t *testing.T) {
	t.Parallel()
	tree := Tree{Packages: []Package{
		{Path: crashPackage, Ignored: []string{"on.go"}},
		{Path: "daemon/ipam", Ignored: []string{"crash_on.go", "other_windows.go"}},
	}}
	if got := checkCrashPoints(tree); len(got) != 1 || got[0].Where != "daemon/ipam/crash_on.go" {
		t.Errorf("got %v, want the one of daemon/ipam", got)
	}
}
