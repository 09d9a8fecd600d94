package cluster

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// contents reads an archive.
func contents(t *testing.T, data []byte) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if out[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWriteImage: what a runtime looks for in an archive leads from the name to the
// program.
func TestWriteImage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program, file := filepath.Join(dir, "program"), filepath.Join(dir, "image.tar")
	if err := os.WriteFile(program, []byte("ELF"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writeImage(file, "docker.io/cnictl/x:test", program); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	image := contents(t, data)
	var manifest []struct {
		Config           string
		RepoTags, Layers []string
	}
	if err := json.Unmarshal(image["manifest.json"], &manifest); err != nil || len(manifest) != 1 || len(manifest[0].Layers) != 1 {
		t.Fatalf("manifest %s, %v", image["manifest.json"], err)
	}
	var config struct {
		Config struct{ Entrypoint []string }
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		} `json:"rootfs"`
	}
	if err := json.Unmarshal(image[manifest[0].Config], &config); err != nil {
		t.Fatal(err)
	}
	layer := image[manifest[0].Layers[0]]
	if manifest[0].RepoTags[0] != "docker.io/cnictl/x:test" || config.RootFS.DiffIDs[0] != "sha256:"+digest(layer) {
		t.Errorf("manifest %+v, config %+v do not name the image and its layer", manifest, config)
	}
	if got := string(contents(t, layer)[config.Config.Entrypoint[0][1:]]); got != "ELF" {
		t.Errorf("the program in the layer is %q", got)
	}
}

func TestOptions_Check(t *testing.T) {
	t.Parallel()
	for what, o := range map[string]Options{
		"no directory":             {Binaries: "b", Nodes: make([]NodeOptions, 1)},
		"no directory of programs": {Dir: "d", Nodes: make([]NodeOptions, 1)},
		"no nodes":                 {Dir: "d", Binaries: "b"},
		"unknown proxy mode":       {Dir: "d", Binaries: "b", Nodes: make([]NodeOptions, 1), ProxyMode: "ipvs"},
	} {
		if err := o.check(); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

// TestRemoveTree removes directories only, as cgroups want it: their files go with them.
func TestRemoveTree(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a")
	if err := os.MkdirAll(filepath.Join(dir, "b", "c"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := removeTree(dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("still there: %v", err)
	}
	if err := removeTree(dir); err != nil {
		t.Errorf("of what is gone: %v", err)
	}
}
