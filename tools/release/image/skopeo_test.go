package image

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// TestSkopeo pushes an archive with the command that docs/install.md shows: the registry gets the
// same images, of every architecture.
func TestSkopeo(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`(?m)^skopeo copy .*$`).FindString(string(page))
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")

	_, i := place(t, "amd64", "arm64")
	unpacked, file := pack(t, i, "amd64", "arm64")
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, "dist"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(file, filepath.Join(home, "dist/aws-vpc-cni.tar")); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(command, "registry.example", host, 1)+" --dest-tls-verify=false")
	c.Dir, c.Env = home, append(os.Environ(), "HOME="+home)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}

	l, err := layout.ImageIndexFromPath(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	reference, err := name.ParseReference(host+"/aws-vpc-cni:v1", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	pushed, err := remote.Index(reference)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := digests(t, pushed), digests(t, l); len(got) != 2 || !slices.Equal(got, want) {
		t.Errorf("pushed %v, want %v", got, want)
	}
}

// digests returns those of the images in an index and the indexes in it.
func digests(t *testing.T, index v1.ImageIndex) (out []v1.Hash) {
	t.Helper()
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range manifest.Manifests {
		if !m.MediaType.IsIndex() {
			out = append(out, m.Digest)
			continue
		}
		inner, err := index.ImageIndex(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, digests(t, inner)...)
	}
	return out
}
