package bundle

import (
	"encoding/json"
	"io"
	"time"
)

// manifestKind identifies our archives.
const manifestKind = "EvidenceBundle"

// Manifest lists the contents of an archive, and what is missing and why.
type Manifest struct {
	Kind          string         `json:"kind"`          // EvidenceBundle
	SchemaVersion int            `json:"schemaVersion"` // of the evidence files
	Version       string         `json:"version"`       // of the cnictl that wrote it
	At            time.Time      `json:"at"`            // of the first reading
	Anonymized    bool           `json:"anonymized"`
	Nodes         []ManifestNode `json:"nodes"`
}

// ManifestNode is one node's part.
type ManifestNode struct {
	Name    string            `json:"name"`
	File    string            `json:"file"`
	Bytes   int               `json:"bytes"`
	Missing map[string]string `json:"missing"` // reasons by source
	Dropped map[string]int    `json:"dropped"` // lines that were left out to save space, by log
}

// checkManifest reads the manifest of an archive.
func (b *reader) checkManifest(body io.Reader) error {
	data, err := readFile(manifestName, body, maxManifest)
	if err != nil {
		return err
	}
	var m Manifest
	switch err := json.Unmarshal(data, &m); {
	case err != nil:
		return refuse("%s: %v", manifestName, err)
	case m.Kind != manifestKind:
		return refuse("%s is of kind %.40q; %s is accepted", manifestName, m.Kind, manifestKind)
	}
	return nil
}
