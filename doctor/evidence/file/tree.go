package file

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Refusal is a rejected value of a file: where it is, and what is expected.
type Refusal struct {
	Line   int    // line in the file
	Member string // such as sources.kern.rule[2].priority
	Why    string
}

func (r *Refusal) Error() string {
	if r.Member == "" {
		return fmt.Sprintf("line %d: %s", r.Line, r.Why)
	}
	return fmt.Sprintf("line %d: %s: %s", r.Line, r.Member, r.Why)
}

func refuse(node *yaml.Node, member, why string) error {
	return &Refusal{Line: node.Line, Member: member, Why: why}
}

func join(path, member string) string {
	if path == "" {
		return member
	}
	return path + "." + member
}

// each calls do for every member of an object. It rejects duplicate members.
func each(n *yaml.Node, path string, do func(key string, at, value *yaml.Node) error) error {
	var seen map[string]bool
	if len(n.Content) > 16 { // most objects are small
		seen = make(map[string]bool, len(n.Content)/2)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		at, value := n.Content[i], n.Content[i+1]
		if at.Kind != yaml.ScalarNode {
			return refuse(at, path, "want a name, not "+kind(at))
		}
		again := seen[at.Value]
		for j := 0; seen == nil && j < i; j += 2 {
			again = again || n.Content[j].Value == at.Value
		}
		if again {
			return refuse(at, join(path, short(at.Value)), "given twice")
		}
		if seen != nil {
			seen[at.Value] = true
		}
		if err := do(at.Value, at, value); err != nil {
			return err
		}
	}
	return nil
}

// child returns the value of an object's member; nil if it has no such member.
func child(object *yaml.Node, name string) *yaml.Node {
	if i := find(object, name); i >= 0 {
		return object.Content[i+1]
	}
	return nil
}

// find returns where an object has a member; -1 if it has no such member.
func find(object *yaml.Node, name string) int {
	for i := 0; i+1 < len(object.Content) && object.Kind == yaml.MappingNode; i += 2 {
		if object.Content[i].Value == name {
			return i
		}
	}
	return -1
}

// take splits an object into the values of some members and the rest.
func take(object *yaml.Node, names ...string) (parts map[string]*yaml.Node, rest *yaml.Node) {
	parts, rest = map[string]*yaml.Node{}, copied(object)
	for _, name := range names {
		if i := find(rest, name); i >= 0 {
			parts[name] = rest.Content[i+1]
			rest.Content = slices.Delete(rest.Content, i, i+2)
		}
	}
	return parts, rest
}

func put(object *yaml.Node, name string, value *yaml.Node) {
	object.Content = append(object.Content, scalar("!!str", name), value)
}

func scalar(tag, value string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}
	if tag == "!!str" {
		n.SetString(strings.ToValidUTF8(value, "\uFFFD")) // otherwise it would become !!binary
	}
	return n
}

func copied(n *yaml.Node) *yaml.Node {
	out := *n
	out.Content = slices.Clone(n.Content)
	return &out
}

// kind describes a value of the file, for errors.
func kind(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "an object"
	case n.Kind == yaml.SequenceNode && len(n.Content) == 0:
		return "an empty list"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "null"
	case n.Tag == "!!str":
		return strconv.Quote(short(n.Value))
	}
	return short(n.Value)
}

// short returns the beginning of a value: input that is no evidence file can be anything.
func short(value string) string {
	const most = 40
	if len(value) <= most {
		return value
	}
	return strings.ToValidUTF8(value[:most], "") + "…"
}
