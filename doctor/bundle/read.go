package bundle

import (
	"io"
	"path"

	"cnictl/doctor/evidence"
	"cnictl/doctor/file"
)

// manifestName is the first file of our archives.
const manifestName = "manifest.json"

// evidenceName returns the file of a node.
func evidenceName(node string) string { return path.Join("nodes", node, "evidence.yaml") }

var isEvidence = lazy(`^nodes/[^/]+/evidence\.(yaml|json)$`)

// maxEvidence bounds the evidence files of an archive.
const maxEvidence = 1 << 30

// reader extracts what it knows from an archive.
type reader struct {
	archive
	manifest bool
	nodes    []*evidence.Evidence // of our evidence files
	bytes    int                  // size of these files
	collector
}

// Read reads an archive of cnictl bundle, of eks-log-collector or of aws-cni-support.sh. The name
// of its file may say when it was made. The notes say what was not used, and why. An error about
// the archive itself is a *Refusal.
func Read(r io.Reader, name string) (_ *evidence.Evidence, notes []string, err error) {
	b := &reader{collector: newCollector(name)}
	if err := b.walk(r, b.visit); err != nil {
		return nil, b.notes, err
	}
	switch {
	case len(b.nodes) > 0 && b.manifest:
		return b.ours(), b.notes, nil
	case len(b.files)+len(b.logs) > 0:
		return b.evidence(), b.notes, nil
	}
	return nil, b.notes, refuse("it has neither %s with %s, as cnictl bundle writes them, nor folders ipamd, networking and var_log, as eks-log-collector and aws-cni-support.sh do",
		manifestName, evidenceName("NODE"))
}

func (b *reader) visit(name string, body io.Reader) error {
	switch {
	case name == manifestName:
		b.manifest = true
		return b.checkManifest(body)
	case isEvidence().MatchString(name):
		data, err := readFile(name, body, file.MaxBytes)
		if err != nil {
			return err
		}
		if b.bytes += len(data); b.bytes > maxEvidence {
			return refuse("its evidence files have more than %d bytes", maxEvidence)
		}
		ev, err := file.Load(data)
		if err != nil {
			return refuse("%s: %v", name, err)
		}
		b.nodes = append(b.nodes, ev)
		return nil
	}
	return b.take(&b.archive, name, body)
}

// readFile reads a file of at most most bytes.
func readFile(name string, body io.Reader, most int) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(body, int64(most)+1))
	switch {
	case err != nil:
		return nil, damaged(err)
	case len(data) > most:
		return nil, refuse("%s has more than %d bytes", name, most)
	}
	return data, nil
}

// ours merges the files of the nodes.
func (b *reader) ours() *evidence.Evidence {
	out := *b.nodes[0]
	out.Mode = evidence.ModeBundle
	for _, n := range b.nodes[1:] {
		out.Nodes = append(out.Nodes, n.Nodes...)
		out.Interval = max(out.Interval, n.Interval)
	}
	return &out
}
