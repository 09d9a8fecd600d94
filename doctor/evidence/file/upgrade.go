package file

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"cnictl/doctor/evidence"
)

// old checks the version of the format, and reports whether it is 1. This runs before everything
// else: a later version may be entirely different.
func old(root *yaml.Node) (bool, error) {
	n := child(root, "schemaVersion")
	if n == nil {
		return false, refuse(root, "schemaVersion", fmt.Sprintf("required: %d", evidence.SchemaVersion))
	}
	switch version, err := strconv.Atoi(n.Value); {
	case err != nil || n.Tag != "!!int" || version < 1:
		return false, refuse(n, "schemaVersion", fmt.Sprintf("want %d, not %s", evidence.SchemaVersion, kind(n)))
	case version > evidence.SchemaVersion:
		return false, refuse(n, "schemaVersion", fmt.Sprintf("%d is later than this cnictl, which reads %d", version, evidence.SchemaVersion))
	default:
		return version < evidence.SchemaVersion, nil
	}
}

// upgrade turns a file of format 1 into one of format 2. Format 1 could also describe a situation,
// which was completed with what a healthy node would show: only what was read is accepted. Members
// of sources were merged into those of the sources before them: of all nodes, of the node, of the
// later reading.
func upgrade(root *yaml.Node) error {
	parts, rest := take(root, "base", "world", "sources", "later", "nodes")
	if base := parts["base"]; base != nil && base.Value != "none" {
		return situation(base, "base")
	}
	name, err := nameIn(parts["world"], "world")
	if err != nil {
		return err
	}
	shared, err := upgradeSources(parts["sources"], "sources")
	if err != nil {
		return err
	}
	once := child(root, "once") != nil && child(root, "once").Value == "true"
	switch nodes := parts["nodes"]; {
	case nodes == nil && name == nil:
		later, err := upgradeLater(once, object(), shared, parts["later"], nil, "")
		if err != nil {
			return err
		}
		put(rest, "later", later)
	case nodes == nil:
		nodes = &yaml.Node{Kind: yaml.SequenceNode, Line: root.Line, Content: []*yaml.Node{object()}}
		parts["nodes"] = nodes
		if child(rest, "scope") == nil {
			scope := object()
			put(scope, "node", name)
			put(rest, "scope", scope)
		}
		fallthrough
	default:
		out := copied(parts["nodes"])
		for i, n := range out.Content {
			if out.Content[i], err = upgradeNode(n, name, shared, parts["later"], once, fmt.Sprintf("nodes[%d]", i)); err != nil {
				return err
			}
		}
		put(rest, "nodes", out)
	}
	put(rest, "sources", shared)
	*root = *rest
	return nil
}

func upgradeNode(n, name, shared, later *yaml.Node, once bool, path string) (*yaml.Node, error) {
	parts, rest := take(n, "world", "sources", "later", "count")
	if count := parts["count"]; count != nil {
		return nil, situation(count, join(path, "count"))
	}
	own, err := nameIn(parts["world"], join(path, "world"))
	if err != nil {
		return nil, err
	}
	for _, name := range []*yaml.Node{own, name, scalar("!!str", "node-1")} {
		if name != nil && child(rest, "node") == nil {
			put(rest, "node", name)
		}
	}
	sources, err := upgradeSources(parts["sources"], join(path, "sources"))
	if err != nil {
		return nil, err
	}
	sources = copied(sources)
	for i := 0; i+1 < len(sources.Content); i += 2 {
		sources.Content[i+1] = merge(child(shared, sources.Content[i].Value), sources.Content[i+1])
	}
	put(rest, "sources", sources)
	second, err := upgradeLater(once, sources, shared, later, parts["later"], path)
	if second != nil {
		put(rest, "later", second)
	}
	return rest, err
}

// upgradeLater merges what two parts say of the later reading. Every node had one unless once was true.
func upgradeLater(once bool, own, shared, all, ofNode *yaml.Node, path string) (*yaml.Node, error) {
	if once && all == nil && ofNode == nil {
		return nil, nil
	}
	out := object()
	for _, later := range []struct {
		part *yaml.Node
		path string
	}{{all, "later"}, {ofNode, join(path, "later")}} {
		if later.part == nil {
			continue
		}
		if world := child(later.part, "world"); world != nil {
			return nil, situation(world, join(later.path, "world"))
		}
		sources, err := upgradeSources(child(later.part, "sources"), join(later.path, "sources"))
		if err != nil {
			return nil, err
		}
		for i := 0; i+1 < len(sources.Content); i += 2 {
			id, value := sources.Content[i].Value, sources.Content[i+1]
			if at := find(out, id); at >= 0 {
				out.Content[at+1] = merge(out.Content[at+1], value)
				continue
			}
			before := child(own, id)
			if before == nil {
				before = child(shared, id)
			}
			out.Content = append(out.Content, sources.Content[i], merge(before, value))
		}
	}
	second := object()
	put(second, "sources", out)
	return second, nil
}

// upgradeSources replaces a group of sources by its members.
func upgradeSources(n *yaml.Node, path string) (*yaml.Node, error) {
	if n == nil {
		return object(), nil
	}
	if n.Kind != yaml.MappingNode {
		return nil, refuse(n, path, "want an object, not "+kind(n))
	}
	out := object()
	for i := 0; i+1 < len(n.Content); i += 2 {
		id, value := n.Content[i].Value, n.Content[i+1]
		if value.Kind == yaml.ScalarNode && value.Value == "expected" && id != "intro.eniconfig" {
			return nil, situation(value, join(path, id))
		}
		if !slices.Contains([]string{"intro", "log", "kern", "host", "ec2", "k8s"}, id) {
			out.Content = append(out.Content, n.Content[i], value)
			continue
		}
		for member := range new(evidence.Reading).Sources() {
			if strings.HasPrefix(member, id+".") && child(n, member) == nil {
				put(out, member, value)
			}
		}
	}
	return out, nil
}

// merge returns a value with the members that an earlier one has and it has not. null takes a member
// away, and lines of a log come after the earlier ones.
func merge(before, value *yaml.Node) *yaml.Node {
	objects := before != nil && before.Kind == yaml.MappingNode && value.Kind == yaml.MappingNode
	if !objects || find(before, "missing") == 0 || find(value, "missing") == 0 {
		return value
	}
	out := copied(before)
	for i := 0; i+1 < len(value.Content); i += 2 {
		name, now := value.Content[i], value.Content[i+1]
		at := find(out, name.Value)
		switch {
		case at < 0:
			out.Content = append(out.Content, name, now)
		case now.Tag == "!!null":
			out.Content = slices.Delete(out.Content, at, at+2)
		case name.Value == "lines" && now.Kind == yaml.SequenceNode && out.Content[at+1].Kind == yaml.SequenceNode:
			lines := copied(out.Content[at+1])
			lines.Content = append(lines.Content, now.Content...)
			out.Content[at+1] = lines
		default:
			out.Content[at+1] = merge(out.Content[at+1], now)
		}
	}
	return out
}

// nameIn returns the name of the node in a world; nil without a world.
func nameIn(world *yaml.Node, path string) (*yaml.Node, error) {
	if world == nil {
		return nil, nil
	}
	if name := child(world, "node"); name != nil && len(world.Content) == 2 {
		return name, nil
	}
	return nil, situation(world, path)
}

// situation refuses what describes a situation.
func situation(n *yaml.Node, path string) error {
	return refuse(n, path, "this file describes a situation, of which cnictl's own tests make evidence: in the source tree, "+
		"go run ./testenv/cmd/situation FILE prints it as an evidence file")
}

func object() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode} }
