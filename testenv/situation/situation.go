package situation

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"cnictl/daemon/resync"
	"cnictl/doctor/evidence"
	"cnictl/doctor/evidence/file"
)

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

// Load reads a situation, YAML or JSON. Errors at a known position are of type *file.Refusal.
func Load(data []byte) (*evidence.Evidence, error) {
	root, err := file.Parse(data)
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

// version is that of the language.
const version = 1

// checkVersion runs before everything else: another version may be entirely different.
func checkVersion(root *yaml.Node) error {
	n := child(root, "schemaVersion")
	switch {
	case n == nil:
		return refuse(root, "schemaVersion", fmt.Sprintf("required: %d", version))
	case n.Tag != "!!int" || n.Value != strconv.Itoa(version):
		return refuse(n, "schemaVersion", fmt.Sprintf("want %d, the version of situations, not %s", version, kind(n)))
	}
	return nil
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
	for id, s := range r.Sources() {
		if doc.Base != "healthy" || !read(evidence.Mode(doc.Mode), id) {
			reason := evidence.MissingMode
			if doc.Base != "healthy" {
				reason = evidence.MissingNotAsked
			}
			s.Lack(reason)
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
	known, wanted := maps.Collect(r.Sources()), maps.Collect(ideal.Sources())
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
				s.Lack(reason)
			default:
				s.Set(wanted[id])
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
			return refuse(at, path, fmt.Sprintf("no source %q; it has %s, and the groups %s",
				key, membersOf(reflect.TypeFor[evidence.Reading]()), strings.Join(groups, ", ")))
		}
		state, reason, err := d.state(value, join(path, key))
		switch {
		case err != nil:
			return err
		case state == stateMissing:
			s.Lack(reason)
			return nil
		case state == stateExpected:
			s.Set(wanted[key])
			return nil
		}
		if reason := s.Reason(); reason == evidence.MissingNotAsked { // "base: none": nothing to merge into
			s.Lack("")
		} else if reason != "" {
			if s.Set(wanted[key]); s.Reason() != "" {
				s.Lack("")
			}
		}
		return d.apply(value, content(s), join(path, key))
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
