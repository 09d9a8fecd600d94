package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"cnictl/daemon/lazy"
	"cnictl/doctor/evidence"
	"cnictl/doctor/evidence/file"
)

// Options control how an archive is written.
type Options struct {
	Version   string // of this cnictl
	MaxBytes  int64  // of the archive; 0 means DefaultMaxBytes
	Anonymize bool

	evidence int // most bytes of evidence; 0 means what Read accepts, and some less
}

// DefaultMaxBytes bounds an archive: issue trackers and mail accept no more.
const DefaultMaxBytes = 20 << 20

// Write writes evidence as an archive. Secrets, container ids and account ids are removed; with
// Anonymize, names, addresses and ids are replaced too. If the archive is too large, the oldest
// log lines are left out. The same evidence gives the same bytes.
func Write(w io.Writer, ev *evidence.Evidence, o Options) (Manifest, error) {
	if len(ev.Nodes) == 0 {
		return Manifest{}, errors.New("write bundle: there is no evidence of any node")
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.evidence == 0 {
		o.evidence = maxEvidence / 10 * 9 // the size in memory is an estimate
	}
	ev = redacted(ev)
	if o.Anonymize {
		ev = anonymized(ev)
	}
	parts, err := partsOf(ev)
	if err != nil {
		return Manifest{}, err
	}
	m := Manifest{Kind: manifestKind, SchemaVersion: evidence.SchemaVersion, Version: o.Version, At: ev.At.UTC(), Anonymized: o.Anonymize}
	for {
		var out bytes.Buffer
		if err := pack(&out, &m, parts); err != nil {
			return Manifest{}, err
		}
		size := 0
		for _, p := range parts {
			size += p.size
		}
		if int64(out.Len()) <= o.MaxBytes && size <= o.evidence {
			_, err := out.WriteTo(w)
			if err != nil {
				err = fmt.Errorf("write bundle: %w", err)
			}
			return m, err
		}
		// Keep slightly less than the share of lines that fits.
		share := 0.9 * min(float64(o.MaxBytes)/float64(out.Len()), float64(o.evidence)/float64(size), 1)
		less := false
		for i := range parts {
			p := &parts[i]
			shorter, dropped := file.Shorten(p.evidence, share)
			if len(dropped) == 0 {
				continue
			}
			p.evidence, less = shorter, true
			for log, lines := range dropped {
				p.dropped[log] += lines
			}
			if err := p.render(); err != nil {
				return Manifest{}, err
			}
		}
		if !less {
			why := fmt.Sprintf("it takes %d bytes without logs, and may take %d", out.Len(), o.MaxBytes)
			if size > o.evidence {
				why = fmt.Sprintf("its evidence takes %d bytes without logs, and may take %d to be read again", size, o.evidence)
			}
			return Manifest{}, fmt.Errorf("write bundle: %s: choose fewer nodes", why)
		}
	}
}

// part is one node's file.
type part struct {
	evidence *evidence.Evidence // of the node alone, with the log lines that are left
	name     string             // of the file
	data     []byte
	size     int // see sizeOf
	dropped  map[string]int
}

// partsOf returns the files of all nodes. A name that is no valid path, or occurs twice, is
// replaced.
func partsOf(ev *evidence.Evidence) ([]part, error) {
	parts, seen := make([]part, len(ev.Nodes)), map[string]bool{}
	for i, n := range ev.Nodes {
		name := n.Name
		if !plainName().MatchString(name) || seen[name] {
			name = fmt.Sprintf("node-%d", i+1)
		}
		seen[name] = true
		one := *ev
		one.Mode, one.Nodes = evidence.ModeBundle, []evidence.Node{n}
		parts[i] = part{evidence: &one, name: evidenceName(name), dropped: map[string]int{}}
		if err := parts[i].render(); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

var plainName = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$`)

// render writes the node's evidence file.
func (p *part) render() error {
	data, dropped, err := file.Fit(p.evidence)
	for log, lines := range dropped {
		p.dropped[log] += lines
	}
	p.data, p.size = data, sizeOf(p.evidence, len(data))
	return err
}

// pack writes the manifest and the files.
func pack(w io.Writer, m *Manifest, parts []part) error {
	m.Nodes = m.Nodes[:0]
	for _, p := range parts {
		m.Nodes = append(m.Nodes, ManifestNode{Name: p.evidence.Nodes[0].Name, File: p.name, Bytes: len(p.data),
			Missing: p.evidence.Nodes[0].First.Missing(), Dropped: p.dropped})
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	if len(text) >= maxManifest {
		return fmt.Errorf("write bundle: its manifest takes %d bytes, and may take %d: choose fewer nodes", len(text), maxManifest)
	}
	zip := gzip.NewWriter(w)
	out := tar.NewWriter(zip)
	add := func(name string, data []byte) {
		h := tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(data)), Mode: 0o600, ModTime: m.At.Truncate(time.Second)}
		if err == nil {
			err = out.WriteHeader(&h)
		}
		if err == nil {
			_, err = out.Write(data)
		}
	}
	add(manifestName, append(text, '\n'))
	for _, p := range parts {
		add(p.name, p.data)
	}
	if err == nil {
		err = out.Close()
	}
	if err == nil {
		err = zip.Close()
	}
	if err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	return nil
}
