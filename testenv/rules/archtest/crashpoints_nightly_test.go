//go:build nightly

package archtest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"cnictl/daemon/api/crashpoint"
)

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

// checkRelease: a released binary contains neither the code that kills it nor the name of any
// crash point.
func checkRelease(pkg string, binary []byte) []Violation {
	markers := []string{crashMarker}
	for _, p := range crashpoint.All() {
		markers = append(markers, string(p))
	}
	var found []string
	for _, m := range markers {
		if bytes.Contains(binary, []byte(m)) {
			found = append(found, m)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return []Violation{{pkg, fmt.Sprintf("has %d texts of crash points, such as %s: build it without the tag %s", len(found), found[0], crashTag)}}
}
