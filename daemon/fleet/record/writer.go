package record

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"slices"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
)

// KeyInterval is the time between two key frames. In a large fleet they are closer together: a
// player may have to apply all entries between two of them to seek.
const (
	KeyInterval = 5 * time.Minute
	keyEntries  = 20_000 // or ten per node, if that is more
)

// Writer writes a recording. It keeps one sample of each node, and is not safe for concurrent
// use.
type Writer struct {
	out    io.Writer
	zip    *gzip.Writer
	last   map[string]*written
	seed   maphash.Seed
	key    time.Time // of the last key frame
	since  int       // samples since then
	count  int       // samples
	nodes  map[string]bool
	docs   map[string]documents // by node: everything written
	from   time.Time
	to     time.Time
	viewed *store.View // the last written view
	failed error
	names  Anonymizer // nil: names are written as they are

	readings map[string]store.Readings // by subnet

	buf bytes.Buffer  // for one document or line
	enc *json.Encoder // to buf
}

// written is the last written sample of a node.
type written struct {
	sample document.NodeIPAM
	body   uint64 // hash of the sample without its times and its object
	object uint64
}

// NewWriter starts a recording with the given header; it sets the header's format and version.
func NewWriter(out io.Writer, header Header) (*Writer, error) {
	header.Format, header.Version = Format, Version
	header.StartedAt = header.StartedAt.UTC()
	w := &Writer{
		out: out, zip: gzip.NewWriter(out), last: map[string]*written{}, seed: maphash.MakeSeed(), nodes: map[string]bool{},
		docs: map[string]documents{}, viewed: &store.View{}, readings: map[string]store.Readings{},
	}
	w.enc = json.NewEncoder(&w.buf)
	if err := w.line(header); err != nil {
		return nil, err
	}
	return w, w.Flush()
}

// Anonymizer replaces names, addresses and ids in documents, the same ones always in the same way.
type Anonymizer interface {
	Learn(document any)       // notes the names in it
	Replace(document any) any // returns a copy without them
}

// Anonymize makes the writer replace names, and comes before the first sample. The title is the
// caller's.
func (w *Writer) Anonymize(names Anonymizer) { w.names = names }

// WriteSample adds a sample that was taken, or failed, at the given time. Only Flush guarantees
// that it is in the file.
func (w *Writer) WriteSample(n document.NodeIPAM, at time.Time) error {
	s, err := w.learned(n)
	if err != nil {
		return err
	}
	return w.add(s, at)
}

// learned prepares a sample to be written. The names in it are learned if they may be new.
func (w *Writer) learned(n document.NodeIPAM) (*written, error) {
	s := &written{sample: shareable(n)}
	body := s.sample
	body.SampledAt, body.LatencySeconds, body.Object = nil, nil, nil
	var err error
	if s.body, err = w.sum(body); err != nil {
		return nil, err
	}
	if s.object, err = w.sum(s.sample.Object); err != nil {
		return nil, err
	}
	before := w.last[n.Metadata.Name]
	if w.names != nil && (before == nil || before.body != s.body || before.object != s.object) {
		w.names.Learn(s.sample)
	}
	return s, nil
}

func (w *Writer) add(s *written, at time.Time) error {
	if !w.key.IsZero() && (at.Sub(w.key).Abs() >= KeyInterval || w.since >= max(keyEntries, 10*len(w.last))) {
		if err := w.keyFrame(at); err != nil {
			return err
		}
	}
	if w.key.IsZero() {
		w.key = at
	}
	if err := w.write(s, at); err != nil {
		return err
	}
	w.hear(s.sample)
	w.count++
	w.since++
	w.nodes[s.sample.Metadata.Name] = true
	if w.from.IsZero() {
		w.from = at
	}
	w.to = at
	return nil
}

// WriteRemoved records that a node is gone.
func (w *Writer) WriteRemoved(node string, at time.Time) error {
	if _, ok := w.last[node]; !ok {
		return nil
	}
	delete(w.last, node)
	delete(w.docs, node)
	return w.line(entry{At: stamp(at), Gone: node})
}

// WriteView adds the changes since the last written view, and flushes.
func (w *Writer) WriteView(v *store.View, at time.Time) error {
	changed, gone := v.Since(w.viewed)
	for _, name := range gone {
		if err := w.WriteRemoved(name, at); err != nil {
			return err
		}
	}
	samples := make([]*written, len(changed))
	for i, n := range changed { // all are learned first: one node's texts may name what is on another
		var err error
		if samples[i], err = w.learned(n.NodeIPAM); err != nil {
			return err
		}
	}
	for _, s := range samples {
		if err := w.add(s, at); err != nil {
			return err
		}
	}
	w.viewed = v
	return w.Flush()
}

// write adds a sample, or an entry that it is unchanged.
func (w *Writer) write(s *written, at time.Time) error {
	n := s.sample
	name := n.Metadata.Name
	before := w.last[name]
	if before == nil && len(w.last) >= maxNodes {
		return fmt.Errorf("more than %d nodes: select fewer with --nodes or --selector", maxNodes)
	}
	w.last[name] = s
	if before != nil && before.object == s.object {
		if before.body == s.body {
			return w.line(entry{At: stamp(at), Same: &same{Node: name, SampledAt: n.SampledAt, LatencySeconds: n.LatencySeconds}})
		}
		n.Object = nil
	}
	return w.line(entry{At: stamp(at), Put: &n})
}

func (w *Writer) sum(v any) (uint64, error) {
	w.buf.Reset()
	if err := w.enc.Encode(v); err != nil {
		return 0, fmt.Errorf("encode a sample for the recording: %w", err)
	}
	return maphash.Bytes(w.seed, w.buf.Bytes()), nil
}

// keyFrame starts a gzip member with all nodes.
func (w *Writer) keyFrame(at time.Time) error {
	if err := w.zip.Close(); err != nil {
		return w.broken(err)
	}
	w.zip.Reset(w.out)
	w.key, w.since = at, 0
	if err := w.line(entry{At: stamp(at), Key: &keyframe{Nodes: len(w.last)}}); err != nil {
		return err
	}
	if err := w.writeReadings(at); err != nil { // before the nodes' newer ones
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(w.last)) {
		if err := w.line(entry{At: stamp(at), Put: &w.last[name].sample}); err != nil {
			return err
		}
	}
	return w.keyDocuments(at)
}

// stamp returns a time in the file's precision.
func stamp(at time.Time) time.Time { return at.UTC().Truncate(time.Millisecond) }

func (w *Writer) line(v any) error {
	if w.failed != nil {
		return w.failed
	}
	if e, ok := v.(entry); ok && w.names != nil {
		v = w.names.Replace(e)
	}
	w.buf.Reset()
	if err := w.enc.Encode(v); err != nil { // ends with a line feed
		return fmt.Errorf("encode a line of the recording: %w", err)
	}
	if w.buf.Len() > maxLine {
		return fmt.Errorf("a line of the recording would be %d bytes long, over the limit of %d: exclude the node with --nodes", w.buf.Len(), maxLine)
	}
	_, err := w.zip.Write(w.buf.Bytes())
	return w.broken(err)
}

// broken keeps the first error of the file: nothing after it would be readable.
func (w *Writer) broken(err error) error {
	if err != nil && w.failed == nil {
		w.failed = fmt.Errorf("write the recording: %w", err)
	}
	return w.failed
}

// Flush writes out everything added so far, which then survives truncation.
func (w *Writer) Flush() error {
	if w.failed != nil {
		return w.failed
	}
	return w.broken(w.zip.Flush())
}

// Info returns the document of the recording so far; the caller adds the file name and the
// title.
func (w *Writer) Info() document.Recording {
	return recording(w.from, w.to, len(w.nodes), w.count, false)
}

func recording(from, to time.Time, nodes, samples int, interrupted bool) document.Recording {
	r := document.Recording{
		APIVersion: introspect.APIVersion, Kind: document.KindRecording,
		Nodes: nodes, Samples: samples, Interrupted: interrupted,
	}
	if samples > 0 {
		from, to = stamp(from), stamp(to)
		r.From, r.To = &from, &to
	}
	return r
}

// Close ends the recording; the caller closes the underlying file.
func (w *Writer) Close() error {
	if w.failed != nil {
		return w.failed
	}
	err := w.broken(w.zip.Close())
	w.failed = errors.New("write to a recording that is closed")
	return err
}
