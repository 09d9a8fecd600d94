package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"cnictl/daemon/resync"
	"cnictl/doctor/evidence"
)

// MaxBytes is the maximum size of a file, before and after expanding its anchors.
const MaxBytes = 8 << 20

// maxMarks bounds the values of a file: the parser takes some 500 bytes for each. Files that people
// or Save write have a mark per ten bytes or more.
const maxMarks = MaxBytes / 5

// fits reports whether Load accepts a file of this size.
func fits(data []byte) bool { return len(data) <= MaxBytes && marks(data) <= maxMarks }

// marks counts what separates values.
func marks(data []byte) (n int) {
	for _, mark := range []byte("\n,[{") {
		n += bytes.Count(data, []byte{mark})
	}
	return n
}

// document is the file as written; the parts that depend on defaults are decoded later.
type document struct {
	SchemaVersion int            `json:"schemaVersion"`
	At            time.Time      `json:"at"`
	Mode          string         `json:"mode" enum:"node,laptop,bundle,cluster"`
	Base          string         `json:"base" enum:"healthy,none"`
	Interval      time.Duration  `json:"interval"`
	Once          bool           `json:"once"`
	Scope         evidence.Scope `json:"scope"`
	Report        []string       `json:"report"`
	part
	Later *part  `json:"later"`
	Nodes []node `json:"nodes"`
}

// part is a world and what was read of it, both as differences.
type part struct {
	World   *yaml.Node `json:"world"`
	Sources *yaml.Node `json:"sources"`
}

type node struct {
	part
	Later *part `json:"later"`
	Count int   `json:"count"`
}

// Load reads an evidence file, YAML or JSON. Errors at a known position are of type *Refusal.
func Load(data []byte) (*evidence.Evidence, error) {
	root, err := parse(data)
	if err != nil {
		return nil, err
	}
	doc := document{Mode: "node", Base: "none", Interval: 2 * time.Minute}
	if err := checkVersion(root); err != nil {
		return nil, err
	}
	if err := (decoder{}).apply(root, reflect.ValueOf(&doc).Elem(), ""); err != nil {
		return nil, err
	}
	switch {
	case doc.At.IsZero():
		return nil, refuse(root, "at", "required: when the first reading was made")
	case doc.Once && doc.Later != nil:
		return nil, refuse(root, "later", "there is no second reading: once is true")
	}
	return doc.resolve(root)
}

// parse reads one document within limits.
func parse(data []byte) (*yaml.Node, error) {
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
	root, err := expand(doc.Content[0], &left)
	if err == nil && root.Kind != yaml.MappingNode {
		err = refuse(root, "", "want an object, not "+kind(root))
	}
	return root, err
}

// expand replaces each alias with the node it refers to, within bounds.
func expand(n *yaml.Node, left *int) (*yaml.Node, error) {
	if *left -= len(n.Value) + 2; *left < 0 {
		return nil, refuse(n, "", fmt.Sprintf("anchors make the file larger than %d bytes", MaxBytes))
	}
	if n.Kind == yaml.AliasNode {
		return expand(n.Alias, left)
	}
	if len(n.Content) == 0 {
		return n, nil
	}
	out := *n
	out.Content = make([]*yaml.Node, len(n.Content))
	for i, c := range n.Content {
		var err error
		if out.Content[i], err = expand(c, left); err != nil {
			return nil, err
		}
	}
	return &out, nil
}

// checkVersion runs before everything else: a later version may be entirely different.
func checkVersion(root *yaml.Node) error {
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value != "schemaVersion" {
			continue
		}
		var version int
		if err := (decoder{}).apply(root.Content[i+1], reflect.ValueOf(&version).Elem(), "schemaVersion"); err != nil {
			return err
		}
		switch {
		case version > evidence.SchemaVersion:
			return refuse(root.Content[i+1], "schemaVersion", fmt.Sprintf("%d is later than this cnictl, which reads %d", version, evidence.SchemaVersion))
		case version < 1:
			return refuse(root.Content[i+1], "schemaVersion", "want 1")
		}
		return nil
	}
	return refuse(root, "schemaVersion", "required: 1")
}

// resolve computes every node's readings.
func (doc *document) resolve(root *yaml.Node) (*evidence.Evidence, error) {
	ev := &evidence.Evidence{At: doc.At, Mode: evidence.Mode(doc.Mode), Interval: doc.Interval, Scope: doc.Scope, Report: doc.Report}
	nodes := doc.Nodes
	if len(nodes) == 0 {
		nodes = []node{{}}
	}
	total, copied := 0, 0
	for i := range nodes {
		n := &nodes[i]
		if total += max(1, n.Count); n.Count > maxEntries || total > maxEntries {
			return nil, refuse(root, "nodes", fmt.Sprintf("want at most %d", maxEntries))
		}
		first, second, err := doc.readings(root, n)
		if err != nil {
			return nil, err
		}
		if copied += n.Count * len(first.reading.Pods.Content); copied > 10*maxEntries {
			return nil, refuse(root, "nodes", fmt.Sprintf("want at most %d pods on nodes that are counted", 10*maxEntries))
		}
		for c := range max(1, n.Count) {
			name := first.name
			if n.Count > 0 {
				name = fmt.Sprintf("%s-%d", name, c+1)
			}
			out := evidence.Node{Name: name, First: first.of(name)}
			if second != nil {
				out.Second = second.of(name)
			}
			ev.Nodes = append(ev.Nodes, out)
		}
	}
	if doc.Once {
		ev.Interval = 0
	}
	if (ev.Scope == evidence.Scope{}) && len(doc.Nodes) == 0 {
		ev.Scope.Node = ev.Nodes[0].Name
	}
	return ev, nil
}

// resolved is a node's reading, with the node's name in its world.
type resolved struct {
	name    string
	reading *evidence.Reading
}

// of returns the reading for a node with another name: references to the node use that name.
func (r *resolved) of(name string) *evidence.Reading {
	if name == r.name {
		return r.reading
	}
	out := *r.reading
	if out.Node.Content.Name == r.name {
		out.Node.Content.Name = name
		if labels := out.Node.Content.Labels; labels[labelHostname] == r.name {
			labels = maps.Clone(labels)
			labels[labelHostname] = name
			out.Node.Content.Labels = labels
		}
	}
	out.Pods.Content = slices.Clone(out.Pods.Content)
	for i := range out.Pods.Content {
		if p := &out.Pods.Content[i]; p.Node != nil && *p.Node == r.name {
			p.Node = &name
		}
	}
	out.DaemonPods.Content = slices.Clone(out.DaemonPods.Content)
	for i := range out.DaemonPods.Content {
		if p := &out.DaemonPods.Content[i]; p.Node == r.name {
			p.Node = name
		}
	}
	out.KubeProxy.Content.Pods = slices.Clone(out.KubeProxy.Content.Pods)
	for i := range out.KubeProxy.Content.Pods {
		if p := &out.KubeProxy.Content.Pods[i]; p.Node == r.name {
			p.Node = name
		}
	}
	out.Events.Content = slices.Clone(out.Events.Content)
	for i := range out.Events.Content {
		if e := &out.Events.Content[i]; e.Kind != "Pod" && e.Name == r.name {
			e.Name = name
		}
	}
	return &out
}

// timed is a part of the file, with the time of the reading it was written for.
type timed struct {
	part
	at   time.Time
	path string
}

func (doc *document) readings(root *yaml.Node, n *node) (first, second *resolved, err error) {
	parts := []timed{{doc.part, doc.At, ""}, {n.part, doc.At, "nodes"}}
	first, err = doc.reading(root, doc.At, parts)
	if err != nil || doc.Once {
		return first, nil, err
	}
	later := doc.At.Add(doc.Interval)
	for _, l := range []struct {
		part *part
		path string
	}{{doc.Later, "later"}, {n.Later, "nodes.later"}} {
		if l.part != nil {
			parts = append(parts, timed{*l.part, later, l.path})
		}
	}
	second, err = doc.reading(root, later, parts)
	return first, second, err
}

// child returns the value of an object's member; nil if it has no such member.
func child(object *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(object.Content) && object.Kind == yaml.MappingNode; i += 2 {
		if object.Content[i].Value == name {
			return object.Content[i+1]
		}
	}
	return nil
}

// reading applies the steps of the format in order: the world, what the sources are expected to
// show, and what was read instead.
func (doc *document) reading(root *yaml.Node, at time.Time, parts []timed) (*resolved, error) {
	w := healthy(doc.At)
	for _, p := range parts {
		if p.World == nil {
			continue
		}
		// Pods listed together with the node's name are on that node.
		if name := child(p.World, "node"); name != nil && name.Kind == yaml.ScalarNode && name.Tag == "!!str" {
			w.Node = name.Value
		}
		d := decoder{at: p.at, node: w.Node}
		if err := d.apply(p.World, reflect.ValueOf(&w).Elem(), join(p.path, "world")); err != nil {
			return nil, err
		}
	}
	if err := w.complete(root); err != nil {
		return nil, err
	}
	people, err := w.populate(at)
	if err != nil {
		return nil, refuse(root, "world.enis", err.Error())
	}
	r := expected(people)
	for id, s := range sourcesOf(r) {
		if doc.Base != "healthy" || !read(evidence.Mode(doc.Mode), id) {
			reason := evidence.MissingMode
			if doc.Base != "healthy" {
				reason = evidence.MissingNotAsked
			}
			if id != "ec2.type" {
				s.lack(reason)
			}
		}
	}
	for _, p := range parts {
		if p.Sources == nil {
			continue
		}
		d := decoder{at: p.at, edits: true, node: w.Node, subnet: w.Subnets[0].ID, growing: true}
		if err := d.sources(p.Sources, r, expected(people), join(p.path, "sources")); err != nil {
			return nil, err
		}
	}
	addCreationTags(r)
	if err := expandCounts(r, root); err != nil {
		return nil, err
	}
	return &resolved{w.Node, r}, nil
}

// addCreationTags adds the createdAt tag that daemons set on the interfaces they create.
func addCreationTags(r *evidence.Reading) {
	for i := range r.Interfaces.Content {
		e := &r.Interfaces.Content[i]
		if strings.HasPrefix(e.Description, resync.DescriptionPrefix) && !e.CreatedAt.IsZero() && e.Tags[resync.TagCreatedAt] == "" {
			e.Tags = maps.Clone(e.Tags)
			if e.Tags == nil {
				e.Tags = map[string]string{}
			}
			e.Tags[resync.TagCreatedAt] = e.CreatedAt.Format(time.RFC3339)
		}
	}
}

// sources edits a reading: groups first, because the value of a single source overrides that of
// its group.
func (d decoder) sources(node *yaml.Node, r, ideal *evidence.Reading, path string) error {
	if node.Kind != yaml.MappingNode {
		return refuse(node, path, "want an object, not "+kind(node))
	}
	known, wanted := maps.Collect(sourcesOf(r)), maps.Collect(sourcesOf(ideal))
	err := each(node, path, func(key string, at, value *yaml.Node) error {
		if !slices.Contains(groups, key) {
			return nil
		}
		state, reason, err := d.state(value, join(path, key))
		if err != nil {
			return err
		}
		if state == stateContent {
			return refuse(value, join(path, key), "want expected, or {missing: REASON}, for a whole group")
		}
		for id, s := range known {
			switch {
			case group(id) != key:
			case state == stateMissing:
				s.lack(reason)
			default:
				s.v.Set(wanted[id].v)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return each(node, path, func(key string, at, value *yaml.Node) error {
		s, ok := known[key]
		if !ok {
			if slices.Contains(groups, key) {
				return nil
			}
			return refuse(at, path, fmt.Sprintf("no source %q; it has %s, and the groups %s", key, membersOf(reflect.TypeFor[evidence.Reading]()), strings.Join(groups, ", ")))
		}
		state, reason, err := d.state(value, join(path, key))
		switch {
		case err != nil:
			return err
		case state == stateMissing:
			s.lack(reason)
			return nil
		case state == stateExpected:
			s.v.Set(wanted[key].v)
			return nil
		}
		if reason := s.missing(); reason != "" {
			if reason == evidence.MissingNotAsked { // "base: none": nothing to merge into
				s.v.SetZero()
			} else {
				s.v.Set(wanted[key].v)
				s.v.Field(1).SetString("")
			}
		}
		return d.apply(value, s.content(), join(path, key))
	})
}

type state int

const (
	stateContent state = iota
	stateExpected
	stateMissing
)

// state tells apart the kinds of values that a source can have.
func (d decoder) state(value *yaml.Node, path string) (state, string, error) {
	switch {
	case value.Kind == yaml.ScalarNode && value.Value == "expected" && value.Tag == "!!str" && !strings.HasSuffix(path, "intro.eniconfig"):
		return stateExpected, "", nil
	case value.Kind == yaml.MappingNode && len(value.Content) == 2 && value.Content[0].Value == "missing":
		reason := value.Content[1]
		if reason.Kind != yaml.ScalarNode || reason.Tag != "!!str" || reason.Value == "" {
			return 0, "", refuse(reason, join(path, "missing"), "want a reason, such as forbidden")
		}
		return stateMissing, reason.Value, nil
	}
	return stateContent, "", nil
}

// expandCounts repeats each entry by its count.
func expandCounts(r *evidence.Reading, root *yaml.Node) error {
	total := 0
	for _, pod := range r.Pods.Content {
		total = min(total+max(1, pod.Count), maxEntries+1)
	}
	for _, node := range r.Nodes.Content {
		total = min(total+max(1, node.Count), maxEntries+1)
	}
	if total > maxEntries {
		return refuse(root, "sources", fmt.Sprintf("want at most %d pods and nodes", maxEntries))
	}
	pods := []evidence.KubePod{}
	for _, pod := range r.Pods.Content {
		if pod.Ready == nil {
			pod.Ready = ref(pod.Phase == "Running")
		}
		for n, count := 1, pod.Count; n <= max(1, count); n++ {
			one := pod
			if one.Count = 0; count > 0 {
				one.Pod += evidence.Pod(fmt.Sprintf("-%d", n))
			}
			pods = append(pods, one)
		}
	}
	if r.Pods.OK() {
		r.Pods.Content = pods
	}
	nodes := []evidence.KubeNode{}
	for _, node := range r.Nodes.Content {
		for n, count := 1, node.Count; n <= max(1, count); n++ {
			one := node
			if one.Count = 0; count > 0 {
				one.Name += fmt.Sprintf("-%d", n)
			}
			nodes = append(nodes, one)
		}
	}
	if r.Nodes.OK() {
		r.Nodes.Content = nodes
	}
	return nil
}
