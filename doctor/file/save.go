package file

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"cnictl/doctor/evidence"
)

// Save writes evidence as a file from which Load reads the same. Sources that are equal on all
// nodes are written once, at the top. The file ends up in tickets and chats; secrets were removed
// when the evidence was read. If logs make the file too large, their oldest lines are dropped.
func Save(ev *evidence.Evidence) ([]byte, error) {
	data, _, err := Fit(ev)
	return data, err
}

// ErrTooLarge: the evidence exceeds MaxBytes even without logs.
var ErrTooLarge = errors.New("the evidence is too large")

// Fit is Save, and also returns how many lines of each log were dropped.
func Fit(ev *evidence.Evidence) (data []byte, dropped map[string]int, err error) {
	dropped = map[string]int{}
	data, err = save(ev)
	if err != nil || fits(data) {
		return data, dropped, err
	}
	bare, _ := Shorten(ev, 0)
	if least, err := save(bare); err != nil || !fits(least) {
		return nil, nil, errors.Join(err, fmt.Errorf("%w: it takes %d bytes without logs, an evidence file at most %d: choose fewer nodes", ErrTooLarge, len(least), MaxBytes))
	}
	for !fits(data) {
		shorter, less := Shorten(ev, 0.5)
		for log, n := range less {
			dropped[log] += n
		}
		ev = shorter
		if data, err = save(ev); err != nil {
			return nil, nil, err
		}
	}
	return data, dropped, nil
}

func save(ev *evidence.Evidence) ([]byte, error) {
	root := object()
	put(root, "schemaVersion", scalar("!!int", strconv.Itoa(evidence.SchemaVersion)))
	put(root, "at", encode(reflect.ValueOf(ev.At)))
	put(root, "mode", scalar("!!str", string(ev.Mode)))
	put(root, "base", scalar("!!str", "none"))
	once := !slices.ContainsFunc(ev.Nodes, func(n evidence.Node) bool { return n.Second != nil })
	if ev.Interval > 0 || !once {
		put(root, "interval", encode(reflect.ValueOf(ev.Interval)))
	}
	put(root, "once", encode(reflect.ValueOf(once)))
	put(root, "scope", encode(reflect.ValueOf(ev.Scope)))
	if len(ev.Report) > 0 {
		put(root, "report", encode(reflect.ValueOf(ev.Report)))
	}
	firsts, seconds := make([]*evidence.Reading, len(ev.Nodes)), make([]*evidence.Reading, len(ev.Nodes))
	for i, n := range ev.Nodes {
		firsts[i], seconds[i] = n.First, n.Second
	}
	shared := common(firsts)
	put(root, "sources", sourcesNode(ev.Nodes[0].First, func(id string) bool { return shared[id] }))
	nodes := &yaml.Node{Kind: yaml.SequenceNode}
	for _, n := range ev.Nodes {
		node, world := object(), object()
		put(world, "node", scalar("!!str", n.Name))
		put(node, "world", world)
		put(node, "sources", sourcesNode(n.First, func(id string) bool { return !shared[id] }))
		if n.Second != nil {
			later := object()
			put(later, "sources", changes(n.First, n.Second))
			put(node, "later", later)
		}
		nodes.Content = append(nodes.Content, node)
	}
	put(root, "nodes", nodes)
	out, err := yaml.Marshal(root)
	if err != nil {
		return nil, fmt.Errorf("write evidence: %w", err)
	}
	return out, nil
}

// Shorten keeps the newest share of the lines of each log, drops at least one, and returns how
// many lines it dropped, by log: log.ipamd, log.awsnode/aws-node. A log of the second reading
// begins with that of the first, so it loses the same lines.
func Shorten(ev *evidence.Evidence, share float64) (_ *evidence.Evidence, dropped map[string]int) {
	out := *ev
	out.Nodes = slices.Clone(ev.Nodes)
	dropped = map[string]int{}
	for i := range out.Nodes {
		n := &out.Nodes[i]
		cut := map[string]int{}
		change := func(name string, l evidence.Log) evidence.Log {
			without := cut[name]
			if without == 0 {
				without = len(l.Lines) - int(float64(len(l.Lines))*share)
			}
			cut[name] = min(without, len(l.Lines))
			return newest(l, cut[name])
		}
		if n.First = withLogs(n.First, change); n.Second != nil {
			n.Second = withLogs(n.Second, change)
		}
		for name, lines := range cut {
			if lines > 0 {
				dropped[name] += lines
			}
		}
	}
	return &out, dropped
}

func newest(l evidence.Log, without int) evidence.Log {
	if without == 0 {
		return l
	}
	l.Lines, l.Truncated = l.Lines[without:], true
	if len(l.Lines) > 0 && !l.Lines[0].At.IsZero() {
		l.From = l.Lines[0].At
	}
	return l
}

// withLogs returns a copy of a reading with each log changed.
func withLogs(r *evidence.Reading, change func(name string, l evidence.Log) evidence.Log) *evidence.Reading {
	out := *r
	for id, s := range sourcesOf(&out) {
		switch content := s.content().Interface().(type) {
		case evidence.Log:
			s.content().Set(reflect.ValueOf(change(id, content)))
		case map[string]evidence.Log:
			logs := maps.Clone(content)
			for name, l := range logs {
				if l.Previous != nil {
					previous := change(id+"/previous/"+name, *l.Previous)
					l.Previous = &previous
				}
				logs[name] = change(id+"/"+name, l)
			}
			s.content().Set(reflect.ValueOf(logs))
		}
	}
	return &out
}

// common returns the sources that are equal on all nodes.
func common(readings []*evidence.Reading) map[string]bool {
	out := map[string]bool{}
	if len(readings) < 2 {
		return out
	}
	first := maps.Collect(sourcesOf(readings[0]))
	for id := range first {
		out[id] = true
	}
	for _, r := range readings[1:] {
		for id, s := range sourcesOf(r) {
			out[id] = out[id] && reflect.DeepEqual(first[id].v.Interface(), s.v.Interface())
		}
	}
	return out
}

func sourcesNode(r *evidence.Reading, wants func(id string) bool) *yaml.Node {
	out := object()
	for id, s := range sourcesOf(r) {
		if wants(id) {
			put(out, id, encoder{full: id == "ec2.type"}.source(s)) // which Load fills in for every file
		}
	}
	return out
}

func (c encoder) source(s source) *yaml.Node {
	if reason := s.missing(); reason != "" {
		n := object()
		put(n, "missing", scalar("!!str", reason))
		return n
	}
	return c.encode(s.content())
}

// changes returns the sources that differ in the second reading. Objects are merged into those of
// the first, so map keys that disappeared are removed explicitly.
func changes(first, second *evidence.Reading) *yaml.Node {
	before := maps.Collect(sourcesOf(first))
	out := object()
	for id, s := range sourcesOf(second) {
		if reflect.DeepEqual(before[id].v.Interface(), s.v.Interface()) {
			continue
		}
		c := encoder{full: before[id].missing() == ""}
		n := c.source(s)
		if c.full && s.missing() == "" {
			subtract(n, c.source(before[id]))
		}
		put(out, id, n)
	}
	return out
}

// subtract keeps the meaning of node when it is merged over an earlier one: names only in the
// earlier one become null, and log lines already in it are omitted.
func subtract(node, earlier *yaml.Node) {
	if node.Kind != yaml.MappingNode || earlier.Kind != yaml.MappingNode {
		return
	}
	now := map[string]*yaml.Node{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		now[node.Content[i].Value] = node.Content[i+1]
	}
	for i := 0; i+1 < len(earlier.Content); i += 2 {
		name, old := earlier.Content[i].Value, earlier.Content[i+1]
		switch n, ok := now[name]; {
		case !ok:
			put(node, name, scalar("!!null", "null"))
		case name == "lines" && n.Kind == yaml.SequenceNode && old.Kind == yaml.SequenceNode:
			n.Content = n.Content[min(len(old.Content), len(n.Content)):]
		default:
			subtract(n, old)
		}
	}
}

func object() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode} }

func scalar(tag, value string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}
	if tag == "!!str" {
		n.SetString(strings.ToValidUTF8(value, "\uFFFD")) // otherwise it would become !!binary
	}
	return n
}

func put(object *yaml.Node, name string, value *yaml.Node) {
	object.Content = append(object.Content, scalar("!!str", name), value)
}

// encode is the inverse of the decoder.
func encode(v reflect.Value) *yaml.Node { return encoder{}.encode(v) }

// encoder omits zero members if their absence means the same. With full, for values merged over
// others, it writes them all.
type encoder struct{ full bool }

func (c encoder) encode(v reflect.Value) *yaml.Node {
	switch x := v.Interface().(type) {
	case time.Time:
		if x.IsZero() {
			return scalar("!!null", "null")
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!timestamp", Value: x.UTC().Format(time.RFC3339Nano)}
	case time.Duration:
		if x < time.Second {
			return scalar("!!str", strconv.FormatFloat(x.Seconds(), 'f', -1, 64)+"s") // files have no unit for milliseconds
		}
		return scalar("!!str", x.String())
	case evidence.Line:
		if x.Text != "" {
			return scalar("!!str", x.Text)
		}
	case encoding.TextMarshaler:
		if v.Kind() != reflect.Pointer {
			text, err := x.MarshalText()
			if err != nil || len(text) == 0 {
				return scalar("!!null", "null")
			}
			return scalar("!!str", string(text))
		}
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return scalar("!!null", "null")
		}
		return c.encode(v.Elem())
	case reflect.Struct:
		return c.encodeStruct(v)
	case reflect.Map:
		return c.encodeMap(v)
	case reflect.Slice:
		if v.IsNil() {
			return scalar("!!null", "null")
		}
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range v.Len() {
			n.Content = append(n.Content, c.encode(v.Index(i)))
		}
		return n
	case reflect.Bool:
		return scalar("!!bool", strconv.FormatBool(v.Bool()))
	case reflect.Float64:
		if text := strconv.FormatFloat(v.Float(), 'f', -1, 64); !strings.Contains(text, ".") {
			return scalar("!!int", text)
		}
		return scalar("!!float", strconv.FormatFloat(v.Float(), 'g', -1, 64))
	case reflect.String:
		return scalar("!!str", v.String())
	case reflect.Uint32, reflect.Uint64:
		return scalar("!!int", strconv.FormatUint(v.Uint(), 10))
	}
	return scalar("!!int", strconv.FormatInt(v.Int(), 10))
}

func (c encoder) encodeStruct(v reflect.Value) *yaml.Node {
	n := object()
	_, pod := v.Interface().(evidence.KubePod)
	for _, m := range membersOf(v.Type()).list {
		field := v.FieldByIndex(m.index)
		if field.IsZero() && m.def == "" && !c.full && !pod && m.name != "subnet" {
			continue
		}
		put(n, m.name, c.encode(field))
	}
	return n
}

func (c encoder) encodeMap(v reflect.Value) *yaml.Node {
	if v.IsNil() {
		return scalar("!!null", "null")
	}
	n := object()
	keys := make([]string, 0, v.Len())
	for _, k := range v.MapKeys() {
		keys = append(keys, k.String())
	}
	slices.Sort(keys)
	for _, k := range keys {
		put(n, k, c.encode(v.MapIndex(reflect.ValueOf(k).Convert(v.Type().Key()))))
	}
	return n
}
