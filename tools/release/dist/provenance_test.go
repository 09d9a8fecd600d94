package dist

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"cnictl/tools/release/files"
)

// TestProvenance: the statement names each file of a release and the image in each archive, with
// its digest, and what it was built from. SHA256SUMS lists the statement.
func TestProvenance(t *testing.T) {
	t.Parallel()
	r := place(t)
	r.Images = true
	out := t.TempDir()
	const index = "1111111111111111111111111111111111111111111111111111111111111111"
	var archive bytes.Buffer
	if err := files.Tar(&archive, []files.File{{Name: "index.json", Mode: 0o644, Data: []byte(`{"manifests":[{"digest":"sha256:` + index + `"}]}`)}}, r.Time); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(out, "aws-vpc-cni.tar"), archive.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	names, err := r.Build(out)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(out, ProvenanceFile))
	if err != nil {
		t.Fatal(err)
	}
	var s Statement
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	subjects := map[string]string{}
	for _, subject := range s.Subject {
		subjects[subject.Name] = subject.Digest["sha256"]
	}
	if subjects["aws-vpc-cni"] != index {
		t.Errorf("the image is %q", subjects["aws-vpc-cni"])
	}
	sums, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(names, "aws-vpc-cni.tar") {
		data, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := subjects[name]; got != digest(data) && name != ProvenanceFile && name != "SHA256SUMS" {
			t.Errorf("%s is %q in the statement", name, got)
		}
		if !strings.Contains(string(sums), digest(data)+"  "+name+"\n") && name != "SHA256SUMS" {
			t.Errorf("SHA256SUMS lacks %s", name)
		}
	}
	build := s.Predicate.BuildDefinition
	if s.Type != "https://in-toto.io/Statement/v1" || s.PredicateType != "https://slsa.dev/provenance/v1" || s.Predicate.RunDetails.Builder.ID != r.Builder ||
		build.BuildType != r.Source+"/docs/releases.md" || build.ExternalParameters["version"] != r.Version {
		t.Errorf("%s", text)
	}
	if from := build.ResolvedDependencies; len(from) != 2 || from[0].URI != "git+"+r.Source || from[0].Digest["gitCommit"] != r.Revision ||
		from[1].URI != "pkg:generic/go@"+strings.TrimPrefix(runtime.Version(), "go") {
		t.Errorf("built from %+v", from)
	}
}

// TestProvenance_Uncommitted: what is in no commit has no provenance.
func TestProvenance_Uncommitted(t *testing.T) {
	t.Parallel()
	r := place(t)
	r.Revision = ""
	out := t.TempDir()
	if _, err := r.Build(out); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(out, ProvenanceFile)); !os.IsNotExist(err) {
		t.Error(err)
	}
}
