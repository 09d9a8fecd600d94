package access

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/human"
	"cnictl/tui/query"
)

func namesOf(targets []fleet.Target) []string {
	names := make([]string, len(targets))
	for i, t := range targets {
		names[i] = t.Name
	}
	return names
}

// nodeTypes are the prefixes that -o name and kubectl put before a node's name.
var nodeTypes = []string{"nodeipam.cnictl", "nodeipam", "node", "nodes", "no"}

// bareName strips an optional type prefix from a name: TYPE/NAME.
func bareName(name string) string {
	if kind, bare, ok := strings.Cut(name, "/"); ok && slices.Contains(nodeTypes, kind) {
		return bare
	}
	return name
}

// bareNames strips the types from names. No names give nil, which selects all of a cluster.
func bareNames(names []string) (bare []string) {
	for _, name := range names {
		bare = append(bare, bareName(name))
	}
	return bare
}

// Meant returns the names of the nodes that match a name. The first kind of match that finds
// any node counts: full name, name without the domain, instance ID or internal address,
// prefix. If it returns more than one, the name is ambiguous.
func Meant(name string, targets []fleet.Target) []string {
	if name == "" {
		return nil
	}
	address, _ := netip.ParseAddr(name)
	for _, is := range []func(fleet.Target) bool{
		func(t fleet.Target) bool { return t.Name == name },
		func(t fleet.Target) bool { return strings.HasPrefix(t.Name, name+".") },
		func(t fleet.Target) bool {
			if t.Object == nil {
				return false
			}
			own, err := netip.ParseAddr(t.Object.InternalIP)
			return t.Object.InstanceID == name || err == nil && own == address
		},
		func(t fleet.Target) bool { return strings.HasPrefix(t.Name, name) },
	} {
		var found []string
		for _, t := range targets {
			if is(t) {
				found = append(found, t.Name)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// fullNames returns the full names of the requested nodes, whose given names may be short.
func fullNames(f *cli.Factory, asked []string, targets []fleet.Target) ([]string, error) {
	full := make([]string, len(asked))
	for i, name := range asked {
		found := Meant(bareName(name), targets)
		switch len(found) {
		case 0:
			return nil, NotFound(f, name, namesOf(targets))
		case 1:
			full[i] = found[0]
		default:
			return nil, ambiguous(f, name, found)
		}
	}
	return full, nil
}

// selectTargets keeps the requested nodes. scope has the nodes of --nodes if both are given:
// requesting a node outside of it is a usage error, not a missing node.
func selectTargets(f *cli.Factory, targets []fleet.Target, asked, scope []string) ([]fleet.Target, error) {
	if len(asked) == 0 {
		return targets, nil
	}
	full, err := fullNames(f, asked, targets)
	if err != nil {
		return nil, err
	}
	if len(scope) > 0 {
		within, err := fullNames(f, scope, targets)
		if err != nil {
			return nil, err
		}
		for i, name := range full {
			if !slices.Contains(within, name) {
				return nil, &cli.Error{
					Code: cli.ExitUsage, What: "node " + asked[i] + " is not one of --nodes",
					Why: "with --nodes only these are read: " + strings.Join(within[:min(mostNames, len(within))], ", "),
					Do:  "omit --nodes, or add " + asked[i],
				}
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(targets), func(t fleet.Target) bool { return !slices.Contains(full, t.Name) }), nil
}

func noNodes(f *cli.Factory, title string) error {
	e := &cli.Error{Code: cli.ExitNotFound, What: "no nodes in " + title, Why: "its API server lists none", Do: "kubectl get nodes"}
	if f.Globals.Selector != "" {
		e.Why, e.Do = "none has the labels "+f.Globals.Selector, "kubectl get nodes --show-labels"
	}
	return e
}

// mostNames bounds the node names that an error lists.
const mostNames = 8

// ambiguous is the error for a name that matches several nodes.
func ambiguous(f *cli.Factory, name string, found []string) *cli.Error {
	list := strings.Join(found[:min(mostNames, len(found))], ", ")
	if len(found) > mostNames {
		list += ", …"
	}
	return &cli.Error{
		Code: cli.ExitUsage, What: fmt.Sprintf("node %s matches %d nodes", name, len(found)), Why: "matching nodes: " + list,
		Do: cmp.Or(f.With(name, found[0]), f.Name+" nodes "+found[0]) + f.SameNodes(),
	}
}

// NotFound is the error for a node that is not among the targets.
func NotFound(f *cli.Factory, name string, known []string) *cli.Error {
	e := &cli.Error{Code: cli.ExitNotFound, What: "node " + name + " not found", Do: f.Name + " nodes" + f.SameNodes()}
	if len(known) <= mostNames {
		e.Why = "the nodes are " + strings.Join(known, ", ")
		return e
	}
	e.Why = "none of " + human.Plural(len(known), "node", "nodes")
	if f.Globals.Selector != "" {
		e.Why += " with the labels " + f.Globals.Selector
	}
	e.Why += " matches this name, instance ID or address"
	if near := query.Near(bareName(name), known); len(near) > 0 {
		e.Why += "; did you mean " + strings.Join(near, ", ")
	}
	return e
}
