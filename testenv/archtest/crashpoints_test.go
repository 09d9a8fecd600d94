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

// TestCrashPoints_Release builds the marked binaries like a release and looks for traces of
// crash points; a build with the tag shows that it would find them.
func TestCrashPoints_Release(t *testing.T) {
	t.Parallel()
	marked := markedBinaries(t)
	for _, pkg := range []string{"cmd/aws-cni", "cmd/aws-k8s-agent"} {
		if !slices.Contains(marked, pkg) {
			t.Errorf("%s has no crash points; marked are %v", pkg, marked)
		}
	}
	for _, row := range []struct {
		name, tags string
		packages   []string
		found      bool
	}{
		{"release", "", marked, false},
		{"with the tag", crashTag, []string{"cmd/aws-cni"}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			for _, pkg := range row.packages {
				out := filepath.Join(t.TempDir(), "binary")
				if err := buildBinary(t.Context(), root, pkg, out, row.tags); err != nil {
					t.Fatal(err)
				}
				binary, err := os.ReadFile(out)
				if err != nil {
					t.Fatal(err)
				}
				if got := checkRelease(pkg, binary); len(got) > 0 != row.found {
					t.Errorf("%s: %v", pkg, got)
				}
			}
		})
	}
}

// markedBinaries are the released programs that link the crash point package.
func markedBinaries(t *testing.T) (out []string) {
	t.Helper()
	listed, err := list(t.Context(), root, "./cmd/...")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range listed {
		if l.Name == "main" && slices.Contains(l.Deps, module+"/"+crashPackage) {
			out = append(out, rel(l.ImportPath))
		}
	}
	return out
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
