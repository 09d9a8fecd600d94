package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"regexp"
	"strings"
	"time"

	"cnictl/doctor/evidence"
	"cnictl/doctor/file"
)

// Options say how an archive is written.
type Options struct {
	Version   string // of this cnictl
	MaxBytes  int64  // of the archive; 0: DefaultMaxBytes
	Anonymize bool
}

// DefaultMaxBytes bounds an archive: trackers and mail take no more.
const DefaultMaxBytes = 20 << 20

// Write writes evidence as an archive. Secrets, container ids and account ids are taken out;
// with Anonymize names, addresses and ids are replaced too. When it becomes too large the
// oldest lines of logs are left out. The same evidence gives the same bytes.
func Write(w io.Writer, ev *evidence.Evidence, o Options) (Manifest, error) {
	if len(ev.Nodes) == 0 {
		return Manifest{}, errors.New("write bundle: there is no evidence of any node")
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
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
		if int64(out.Len()) <= o.MaxBytes {
			_, err := out.WriteTo(w)
			if err != nil {
				err = fmt.Errorf("write bundle: %w", err)
			}
			return m, err
		}
		// What is left of the lines is a little less than the share that fits.
		share := 0.9 * float64(o.MaxBytes) / float64(out.Len())
		less := false
		for i := range parts {
			if dropped := parts[i].shorten(share); dropped {
				less = true
				if err := parts[i].render(ev); err != nil {
					return Manifest{}, err
				}
			}
		}
		if !less {
			return Manifest{}, fmt.Errorf("write bundle: it takes %d bytes without logs, and may take %d: choose fewer nodes", out.Len(), o.MaxBytes)
		}
	}
}

// part is one node's file.
type part struct {
	node    evidence.Node // with the lines that are left
	name    string        // of the file
	data    []byte
	dropped map[string]int
}

// parts are the files of all nodes. A name that makes no path, or comes twice, is replaced.
func partsOf(ev *evidence.Evidence) ([]part, error) {
	parts, seen := make([]part, len(ev.Nodes)), map[string]bool{}
	for i, n := range ev.Nodes {
		name := n.Name
		if !plainName.MatchString(name) || seen[name] {
			name = fmt.Sprintf("node-%d", i+1)
		}
		seen[name] = true
		parts[i] = part{node: n, name: evidenceName(name), dropped: map[string]int{}}
		if err := parts[i].render(ev); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$`)

// render writes the node's evidence file, with fewer lines of logs if it is too large.
func (p *part) render(ev *evidence.Evidence) (err error) {
	one := *ev
	one.Mode, one.Nodes = evidence.ModeBundle, []evidence.Node{p.node}
	for {
		one.Nodes[0] = p.node
		if p.data, err = file.Save(&one); err == nil || !p.shorten(0.5) {
			return err
		}
	}
}

// shorten leaves the newest share of the lines of each log; false: there are none. Both
// readings lose as many: a file has of the second what came after the first.
func (p *part) shorten(share float64) (any bool) {
	counts := map[string]int{}
	for id, log := range logsOf(p.node.First) {
		counts[id] = len(log.Lines)
	}
	for _, r := range []*evidence.Reading{p.node.First, p.node.Second} {
		for id, log := range logsOf(r) {
			n, ok := counts[id]
			if !ok {
				n = len(log.Lines)
			}
			drop := min(n-int(float64(n)*share), len(log.Lines))
			if drop == 0 {
				continue
			}
			any = true
			if r == p.node.Last() {
				p.dropped[id] += drop
			}
			log.Lines, log.Truncated = log.Lines[drop:], true
			if log.From = log.To; len(log.Lines) > 0 {
				log.From = log.Lines[0].At
			}
		}
	}
	return any
}

// logsOf are the logs of a reading that were read, by id: log.ipamd, log.awsnode/aws-node.
func logsOf(r *evidence.Reading) iter.Seq2[string, *evidence.Log] {
	return func(yield func(string, *evidence.Log) bool) {
		if r == nil {
			return
		}
		logs := map[string]*evidence.Log{"log.ipamd": &r.LogIPAMD.Content, "log.plugin": &r.LogPlugin.Content, "log.np": &r.LogAgent.Content, "log.kubelet": &r.LogKubelet.Content}
		for id, log := range logs {
			if !yield(id, log) {
				return
			}
		}
		for name, log := range r.LogAWSNode.Content {
			id := "log.awsnode/" + name
			more := yield(id, &log) && (log.Previous == nil || yield(id+" (previous)", log.Previous))
			r.LogAWSNode.Content[name] = log
			if !more {
				return
			}
		}
	}
}

// pack writes manifest and files.
func pack(w io.Writer, m *Manifest, parts []part) error {
	m.Nodes = m.Nodes[:0]
	for _, p := range parts {
		m.Nodes = append(m.Nodes, ManifestNode{Name: p.node.Name, File: p.name, Bytes: len(p.data), Missing: missing(p.node.First), Dropped: p.dropped})
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("write bundle: %w", err)
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

// missing are the reasons of the sources that a reading lacks.
func missing(r *evidence.Reading) map[string]string {
	out := map[string]string{}
	v := reflect.ValueOf(r).Elem()
	for _, f := range reflect.VisibleFields(v.Type()) {
		if id := f.Tag.Get("json"); strings.Contains(id, ".") || id == "metrics" || id == "ckpt" || id == "imds" || id == "probe" {
			if reason := v.FieldByIndex(f.Index).FieldByName("Missing").String(); reason != "" {
				out[id] = reason
			}
		}
	}
	return out
}
