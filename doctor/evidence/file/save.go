package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

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
		return nil, nil, errors.Join(err, fmt.Errorf("%w: it takes %d bytes without logs, an evidence file at most %d: choose fewer nodes",
			ErrTooLarge, len(least), MaxBytes))
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
	once := !slices.ContainsFunc(ev.Nodes, func(n evidence.Node) bool { return n.Second != nil })
	h := head{SchemaVersion: evidence.SchemaVersion, At: ev.At.UTC(), Mode: ev.Mode, Once: once, Scope: ev.Scope, Report: ev.Report}
	if !once {
		h.Interval = new(text(ev.Interval))
	}
	root, err := tree(h)
	if err != nil {
		return nil, err
	}
	shared := common(ev.Nodes)
	if len(shared) > 0 {
		put(root, "sources", written(ev.Nodes[0].First, func(id string, _ evidence.AnySource) bool { return shared[id] }))
	}
	nodes := &yaml.Node{Kind: yaml.SequenceNode}
	for _, n := range ev.Nodes {
		node := object()
		put(node, "node", scalar("!!str", n.Name))
		put(node, "sources", written(n.First, func(id string, s evidence.AnySource) bool {
			return !shared[id] && s.Reason() != evidence.MissingNotAsked
		}))
		if n.Second != nil {
			later := object()
			put(later, "sources", written(n.Second, func(id string, s evidence.AnySource) bool {
				before, _ := n.First.Source(id)
				return !reflect.DeepEqual(before, s)
			}))
			put(node, "later", later)
		}
		nodes.Content = append(nodes.Content, node)
	}
	put(root, "nodes", nodes)
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return nil, fmt.Errorf("write evidence: %w", err)
	}
	return out.Bytes(), nil
}

// common returns the sources that are equal on all nodes, if there are several.
func common(nodes []evidence.Node) map[string]bool {
	out := map[string]bool{}
	if len(nodes) < 2 {
		return out
	}
	for id, first := range nodes[0].First.Sources() {
		out[id] = first.Reason() != evidence.MissingNotAsked && !slices.ContainsFunc(nodes[1:], func(n evidence.Node) bool {
			s, _ := n.First.Source(id)
			return !reflect.DeepEqual(first, s)
		})
	}
	return out
}

// written returns the wanted sources of a reading. One that JSON cannot express is missing.
func written(r *evidence.Reading, wants func(id string, s evidence.AnySource) bool) *yaml.Node {
	out := object()
	for id, s := range r.Sources() {
		if !wants(id, s) {
			continue
		}
		reason := s.Reason()
		if reason == "" {
			content, err := tree(s.Value())
			if err == nil {
				put(out, id, content)
				continue
			}
			reason = "cannot be saved: " + strings.TrimPrefix(err.Error(), "json: ")
		}
		missing := object()
		put(missing, "missing", scalar("!!str", reason))
		put(out, id, missing)
	}
	return out
}

// tree returns a value as YAML, with the members of its JSON.
func tree(value any) (*yaml.Node, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return next(dec)
}

// next returns the next value of a stream of tokens.
func next(dec *json.Decoder) (*yaml.Node, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		if t == '{' {
			n.Kind = yaml.MappingNode
		}
		for dec.More() {
			item, err := next(dec)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, item)
		}
		_, err := dec.Token()
		return n, err
	case string:
		return scalar("!!str", t), nil
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: t.String()}, nil
	case bool:
		return scalar("!!bool", fmt.Sprint(t)), nil
	}
	return scalar("!!null", "null"), nil
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
	for id, s := range out.Sources() {
		switch content := s.Value().(type) {
		case *evidence.Log:
			*content = change(id, *content)
		case *map[string]evidence.Log:
			logs := maps.Clone(*content)
			for name, l := range logs {
				if l.Previous != nil {
					previous := change(id+"/previous/"+name, *l.Previous)
					l.Previous = &previous
				}
				logs[name] = change(id+"/"+name, l)
			}
			*content = logs
		}
	}
	return &out
}
