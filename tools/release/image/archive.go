package image

import (
	"encoding/json"
	"io"
	"os"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"cnictl/tools/release/files"
)

// write writes an OCI image layout as a tar: one index of all architectures. It adds the
// manifest.json that older versions of "docker load" need. These know one architecture per
// name, so with several architectures each gets a name of its own.
func write(w io.Writer, name string, archs []string, images []v1.Image) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var docker []map[string]any
	for n, image := range images {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: archs[n]}},
		})
		tag := name
		if len(images) > 1 {
			tag += "-" + archs[n]
		}
		manifest, err := image.Manifest()
		if err != nil {
			return err
		}
		var layers []string
		for _, l := range manifest.Layers {
			layers = append(layers, blob(l.Digest))
		}
		docker = append(docker, map[string]any{"Config": blob(manifest.Config.Digest), "RepoTags": []string{tag}, "Layers": layers})
	}
	dir, err := os.MkdirTemp("", "mkimage-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	out, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := out.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"io.containerd.image.name":          name,
		"org.opencontainers.image.ref.name": name[strings.LastIndex(name, ":")+1:],
	})); err != nil {
		return err
	}
	text, err := json.Marshal(docker)
	if err != nil {
		return err
	}
	if err := out.WriteFile("manifest.json", text, 0o644); err != nil {
		return err
	}
	all, err := files.Tree(dir)
	if err != nil {
		return err
	}
	return files.Tar(w, all, epoch)
}

func blob(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }
