package dist

import (
	"archive/tar"
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// ProvenanceFile says from what the other files were built, as an in-toto statement with SLSA's
// predicate. It is not signed: SHA256SUMS, which lists it, is what to sign (docs/releases.md).
const ProvenanceFile = "provenance.intoto.json"

// Statement is an in-toto statement (https://in-toto.io/Statement/v1) with the predicate
// https://slsa.dev/provenance/v1.
type Statement struct {
	Type          string     `json:"_type"`
	Subject       []Resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     Provenance `json:"predicate"`
}

// Resource is in-toto's ResourceDescriptor.
type Resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

// Provenance is SLSA's predicate. It has no times of the build, so that the same inputs make the
// same bytes.
type Provenance struct {
	BuildDefinition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]string `json:"externalParameters"`
		InternalParameters   map[string]string `json:"internalParameters"`
		ResolvedDependencies []Resource        `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

// provenance makes the statement about files by name.
func (r Release) provenance(made map[string][]byte, goVersion string) ([]byte, error) {
	s := Statement{Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1"}
	for _, name := range sorted(made) {
		s.Subject = append(s.Subject, Resource{Name: name, Digest: map[string]string{"sha256": digest(made[name])}})
		if path.Ext(name) != ".tar" {
			continue
		}
		index, err := imageIn(made[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		image := strings.TrimSuffix(path.Base(name), ".tar")
		s.Subject = append(s.Subject, Resource{Name: image, URI: "pkg:oci/" + image, Digest: index})
	}
	build := &s.Predicate.BuildDefinition
	build.BuildType = strings.TrimSuffix(r.Source, "/") + "/docs/releases.md"
	build.ExternalParameters = map[string]string{"source": r.Source, "version": r.Version}
	build.InternalParameters = map[string]string{"SOURCE_DATE_EPOCH": fmt.Sprint(r.Time.Unix())}
	build.ResolvedDependencies = []Resource{
		{URI: "git+" + r.Source, Digest: map[string]string{"gitCommit": r.Revision}},
		{URI: "pkg:generic/go@" + strings.TrimPrefix(goVersion, "go")},
	}
	s.Predicate.RunDetails.Builder.ID = r.Builder
	text, err := json.MarshalIndent(s, "", "  ")
	return append(text, '\n'), err
}

func sorted(made map[string][]byte) []string {
	var names []string
	for name := range made {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// goOf returns the version of Go that built a program.
func goOf(program string) (string, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return "", err
	}
	return info.GoVersion, nil
}

// imageIn returns the digest under which registries know the only image in an OCI archive.
func imageIn(archive []byte) (map[string]string, error) {
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if err != nil {
			return nil, fmt.Errorf("no index.json: %w", err)
		}
		if h.Name != "index.json" {
			continue
		}
		var index struct{ Manifests []struct{ Digest string } }
		text, err := io.ReadAll(r)
		if err == nil {
			err = json.Unmarshal(text, &index)
		}
		if err != nil {
			return nil, err
		}
		if len(index.Manifests) != 1 {
			return nil, fmt.Errorf("index.json names %d images, not one", len(index.Manifests))
		}
		algorithm, sum, ok := strings.Cut(index.Manifests[0].Digest, ":")
		if !ok {
			return nil, errors.New("index.json has no digest")
		}
		return map[string]string{algorithm: sum}, nil
	}
}
