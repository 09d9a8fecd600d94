package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"cnictl/doctor/evidence"
)

// MaxBytes is the maximum size of a file, before and after expanding its anchors.
const MaxBytes = 8 << 20

// maxMarks bounds the values of a file: the parser takes some 500 bytes for each. Files that people
// or Save write have a mark per ten bytes or more.
const maxMarks = MaxBytes / 5

// maxDepth bounds how deep values are nested; evidence has some twenty levels.
const maxDepth = 100

// fits reports whether Load accepts a file of this size.
func fits(data []byte) bool { return len(data) <= MaxBytes && marks(data) <= maxMarks }

// marks counts what separates values.
func marks(data []byte) (n int) {
	for _, mark := range []byte("\n,[{") {
		n += bytes.Count(data, []byte{mark})
	}
	return n
}

// head is a file without its sources and nodes, which parts reads.
type head struct {
	SchemaVersion int            `json:"schemaVersion"`
	At            time.Time      `json:"at"`
	Mode          evidence.Mode  `json:"mode,omitzero" enum:"node,laptop,bundle,cluster"`
	Interval      *text          `json:"interval,omitzero"` // nil: two minutes
	Once          bool           `json:"once,omitzero"`
	Scope         evidence.Scope `json:"scope,omitzero"`
	Report        []string       `json:"report,omitzero"`
	Sources       struct{}       `json:"sources,omitzero"`
	Later         struct{}       `json:"later,omitzero"`
	Nodes         struct{}       `json:"nodes,omitzero"`
}

// text is a duration as it is written: 2m30s.
type text time.Duration

func (t text) MarshalText() ([]byte, error) { return []byte(time.Duration(t).String()), nil }

func (t *text) UnmarshalText(data []byte) error {
	d, err := duration(string(data))
	*t = text(d)
	return err
}

// Load reads an evidence file, YAML or JSON. Errors at a known position are of type *Refusal.
func Load(data []byte) (*evidence.Evidence, error) {
	root, err := Parse(data)
	if err != nil {
		return nil, err
	}
	l := loader{}
	if l.old, err = old(root); err != nil {
		return nil, err
	}
	if l.old {
		if err := upgrade(root); err != nil {
			return nil, err
		}
	}
	at := child(root, "at")
	parts, rest := take(root, "sources", "later", "nodes")
	h := head{Mode: evidence.ModeNode}
	if err := l.decode(rest, &h, ""); err != nil {
		return nil, err
	}
	interval := 2 * time.Minute
	if h.Interval != nil {
		interval = time.Duration(*h.Interval)
	}
	switch {
	case h.At.IsZero():
		return nil, refuse(root, "at", "required: when the first reading was made")
	case h.At.Year() < 1970:
		return nil, refuse(at, "at", "want a time after 1970")
	}
	ev := &evidence.Evidence{At: h.At.UTC(), Mode: h.Mode, Scope: h.Scope, Report: h.Report}
	l.first, l.second, l.once = ev.At, ev.At.Add(interval), h.Once
	if ev.Nodes, err = l.nodes(parts); err != nil {
		return nil, err
	}
	for _, n := range ev.Nodes {
		if n.Second != nil {
			ev.Interval = interval
		}
	}
	if (ev.Scope == evidence.Scope{}) && parts["nodes"] == nil {
		ev.Scope.Node = ev.Nodes[0].Name
	}
	return ev, nil
}

// Parse returns the one document of a file, within limits and without aliases.
func Parse(data []byte) (*yaml.Node, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("the file has %d bytes; %d are accepted", len(data), MaxBytes)
	}
	if n := marks(data); n > maxMarks {
		return nil, fmt.Errorf("the file has %d lines and elements of lists; %d are accepted", n, maxMarks)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, errors.New("the file is empty")
	} else if err != nil {
		return nil, fmt.Errorf("not YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("the file has more than one document")
	}
	left := MaxBytes
	root, err := expand(doc.Content[0], &left, 0)
	if err == nil && root.Kind != yaml.MappingNode {
		err = refuse(root, "", "want an object, not "+kind(root))
	}
	return root, err
}

// expand replaces each alias with the node that it refers to, within bounds.
func expand(n *yaml.Node, left *int, depth int) (*yaml.Node, error) {
	if *left -= len(n.Value) + 2; *left < 0 {
		return nil, refuse(n, "", fmt.Sprintf("anchors make the file larger than %d bytes", MaxBytes))
	}
	if depth > maxDepth {
		return nil, refuse(n, "", fmt.Sprintf("nested deeper than %d levels", maxDepth))
	}
	if n.Kind == yaml.AliasNode {
		return expand(n.Alias, left, depth+1)
	}
	out := n
	for i, c := range n.Content {
		is, err := expand(c, left, depth+1)
		if err != nil {
			return nil, err
		}
		if is != c {
			if out == n { // an anchored node may be used elsewhere
				out = copied(n)
			}
			out.Content[i] = is
		}
	}
	return out, nil
}

// loader reads the nodes of a file.
type loader struct {
	filler
	first, second time.Time // of the readings
	once          bool
}

func (l *loader) nodes(parts map[string]*yaml.Node) ([]evidence.Node, error) {
	list := parts["nodes"]
	if list == nil {
		list = &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{{Kind: yaml.MappingNode}}}
	}
	if list.Kind != yaml.SequenceNode || len(list.Content) == 0 {
		return nil, refuse(list, "nodes", "want a list of nodes, not "+kind(list))
	}
	shared := evidence.Unread(l.first, evidence.MissingNotAsked)
	l.at = l.first
	if err := l.sources(parts["sources"], shared, "sources"); err != nil {
		return nil, err
	}
	out := make([]evidence.Node, 0, len(list.Content))
	for i, n := range list.Content {
		path := fmt.Sprintf("nodes[%d]", i)
		one, err := l.node(n, parts["later"], *shared, path)
		if err != nil {
			return nil, err
		}
		switch {
		case parts["nodes"] == nil:
			one.Name = nameOf(one.First)
		case child(n, "node") == nil:
			return nil, refuse(n, path+".node", "required: the name of the node")
		}
		out = append(out, one)
	}
	return out, nil
}

// node reads a node: its sources take the place of those that all nodes share, and those of a later
// reading take the place of both.
func (l *loader) node(n, allLater *yaml.Node, first evidence.Reading, path string) (out evidence.Node, err error) {
	if n.Kind != yaml.MappingNode {
		return out, refuse(n, path, "want an object, not "+kind(n))
	}
	var named struct {
		Node    string   `json:"node"`
		Sources struct{} `json:"sources"`
		Later   struct{} `json:"later"`
	}
	parts, rest := take(n, "sources", "later")
	if err := l.decode(rest, &named, path); err != nil {
		return out, err
	}
	out.Name, out.First = named.Node, &first
	l.at = l.first
	if err := l.sources(parts["sources"], &first, join(path, "sources")); err != nil {
		return out, err
	}
	if allLater == nil && parts["later"] == nil {
		return out, nil
	}
	second := first
	second.At, l.at = l.second, l.second
	out.Second = &second
	for _, later := range []struct {
		part *yaml.Node
		path string
	}{{allLater, "later"}, {parts["later"], join(path, "later")}} {
		if later.part == nil {
			continue
		}
		if l.once {
			return out, refuse(later.part, later.path, "there is no second reading: once is true")
		}
		sources := child(later.part, "sources")
		if later.part.Kind != yaml.MappingNode || len(later.part.Content) > 0 && (sources == nil || len(later.part.Content) > 2) {
			return out, refuse(later.part, later.path, "want {sources: …}")
		}
		if err := l.sources(sources, &second, join(later.path, "sources")); err != nil {
			return out, err
		}
	}
	return out, nil
}

// sources reads sources into a reading.
func (l *loader) sources(n *yaml.Node, r *evidence.Reading, path string) error {
	if n == nil {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return refuse(n, path, "want an object, not "+kind(n))
	}
	return each(n, path, func(id string, at, value *yaml.Node) error {
		s, ok := r.Source(id)
		if !ok {
			var ids []string
			for known := range r.Sources() {
				ids = append(ids, known)
			}
			return refuse(at, path, fmt.Sprintf("no source %q; it has %s", short(id), strings.Join(ids, ", ")))
		}
		if reason := child(value, "missing"); reason != nil && len(value.Content) == 2 {
			if reason.Kind != yaml.ScalarNode || reason.Tag != "!!str" || reason.Value == "" {
				return refuse(reason, join(path, id)+".missing", "want a reason, such as forbidden")
			}
			s.Lack(reason.Value)
			return nil
		}
		s.Lack("") // nothing is left of what all nodes share
		return l.decode(value, s.Value(), join(path, id))
	})
}

// nameOf names the only node of a file that does not name it.
func nameOf(r *evidence.Reading) string {
	switch {
	case r.Node.Content.Name != "":
		return r.Node.Content.Name
	case r.Summary.Content.Node != "":
		return r.Summary.Content.Node
	}
	return "node-1"
}

// decode reads a value into what to points to.
func (l *loader) decode(n *yaml.Node, to any, path string) error {
	return l.value(n, reflect.ValueOf(to).Elem(), path, false)
}
