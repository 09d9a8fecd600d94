package bundle

import (
	"io"
	"path"
	"reflect"
	"time"

	"cnictl/daemon/lazy"
	"cnictl/doctor/evidence"
	"cnictl/doctor/evidence/file"
)

// manifestName is the first file of our archives.
const manifestName = "manifest.json"

// evidenceName returns the file of a node.
func evidenceName(node string) string { return path.Join("nodes", node, "evidence.yaml") }

var isEvidence = lazy.Regexp(`^nodes/[^/]+/evidence\.(yaml|json)$`)

// Limits of an archive of ours.
const (
	maxEvidence = 256 << 20 // bytes of evidence, in memory or in files, whichever is more
	maxManifest = 64 << 20
)

// reader extracts what it knows from an archive.
type reader struct {
	archive
	manifest bool
	nodes    []*evidence.Evidence // of our evidence files
	size     int                  // of this evidence
	most     int                  // maximum of size
	collector
}

// Read reads an archive of cnictl bundle, of eks-log-collector or of aws-cni-support.sh. The name
// of its file may say when it was made. The notes say what was not used, and why. An error about
// the archive itself is a *Refusal.
func Read(r io.Reader, name string) (ev *evidence.Evidence, notes []string, err error) {
	return read(r, name, maxEvidence)
}

func read(r io.Reader, name string, most int) (*evidence.Evidence, []string, error) {
	b := &reader{collector: newCollector(name), most: most}
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
		ev, err := file.Load(data)
		if err != nil {
			return refuse("%s: %v", name, err)
		}
		if b.size += sizeOf(ev, len(data)); b.size > b.most {
			return refuse("its evidence has more than %d MiB", b.most>>20)
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

// sizeOf returns what evidence takes: in memory, or in its file if that is more.
func sizeOf(ev *evidence.Evidence, inFile int) int { return max(held(reflect.ValueOf(ev)), inFile) }

// held returns the bytes of memory that a value takes besides its own size. Texts and lists that are
// shared count each time, as they are not shared once they are read from a file.
func held(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Pointer:
		if !v.IsNil() {
			return int(v.Type().Elem().Size()) + held(v.Elem())
		}
	case reflect.Slice:
		n = v.Len() * int(v.Type().Elem().Size())
		for i := range v.Len() {
			n += held(v.Index(i))
		}
	case reflect.Map:
		for key, value := range v.Seq2() {
			n += 2*int(v.Type().Key().Size()+v.Type().Elem().Size()) + held(key) + held(value)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return 0 // its location is shared
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				n += held(v.Field(i))
			}
		}
	}
	return n
}
