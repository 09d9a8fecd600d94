package cluster

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
)

// Images of the cluster. There is no registry: they are on every node, to be used with
// imagePullPolicy Never.
const (
	pauseImage = "docker.io/cnictl/pause:test"
	ProbeImage = "docker.io/cnictl/podprobe:test" // runs testenv/cmd/podprobe
)

// writeImage packs a static program into an image, as an archive that "docker save"
// would write.
func writeImage(file, name, program string) error {
	binary, err := os.ReadFile(program)
	if err != nil {
		return fmt.Errorf("pack image %s: %w", name, err)
	}
	layer, err := archive(entry{"program", 0o755, binary})
	if err != nil {
		return fmt.Errorf("pack image %s: %w", name, err)
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/program"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest(layer)}},
	})
	if err != nil {
		return fmt.Errorf("pack image %s: %w", name, err)
	}
	manifest, err := json.Marshal([]any{map[string]any{
		"Config": "config.json", "RepoTags": []string{name}, "Layers": []string{"layer.tar"},
	}})
	if err != nil {
		return fmt.Errorf("pack image %s: %w", name, err)
	}
	whole, err := archive(entry{"config.json", 0o644, config}, entry{"layer.tar", 0o644, layer}, entry{"manifest.json", 0o644, manifest})
	if err == nil {
		err = os.WriteFile(file, whole, 0o644)
	}
	if err != nil {
		return fmt.Errorf("pack image %s: %w", name, err)
	}
	return nil
}

type entry struct {
	name string
	mode int64
	data []byte
}

func archive(entries ...entry) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		if err := w.WriteHeader(&tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.data))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
