package access

import (
	"slices"
	"strings"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet"
)

func namesOf(targets []fleet.Target) []string {
	names := make([]string, len(targets))
	for i, t := range targets {
		names[i] = t.Name
	}
	return names
}

// wholeNames are the known names of nodes that were asked for, which may be short.
func wholeNames(f *cli.Factory, asked, known []string) ([]string, error) {
	whole := make([]string, len(asked))
	for i, name := range asked {
		whole[i] = WholeName(name, known)
		if !slices.Contains(known, whole[i]) {
			return nil, NotFound(f, name, known)
		}
	}
	return whole, nil
}

// WholeName is the known name that a short one, without the domain, stands for: the short
// one itself when none or several begin so.
func WholeName(name string, known []string) string {
	if slices.Contains(known, name) {
		return name
	}
	found := name
	for _, k := range known {
		if isNamed(k, name) {
			if found != name {
				return name
			}
			found = k
		}
	}
	return found
}

// isNamed tells whether a node's name is this one, or begins with it before its domain.
func isNamed(node, name string) bool {
	rest, ok := strings.CutPrefix(node, name)
	return ok && name != "" && (rest == "" || rest[0] == '.')
}

func noNodes(f *cli.Factory, title string) error {
	e := &cli.Error{Code: cli.ExitNotFound, What: "no nodes in " + title, Why: "its API server lists none", Do: "kubectl get nodes"}
	if f.Globals.Selector != "" {
		e.Why, e.Do = "none has the labels "+f.Globals.Selector, "kubectl get nodes --show-labels"
	}
	return e
}

// NotFound is the error of a node that no target names.
func NotFound(f *cli.Factory, name string, known []string) *cli.Error {
	const most = 8
	list := strings.Join(known[:min(most, len(known))], ", ")
	if len(known) > most {
		list += ", …"
	}
	return &cli.Error{Code: cli.ExitNotFound, What: "node " + name + " not found", Why: "the nodes known are " + list, Do: f.Name + " nodes"}
}
