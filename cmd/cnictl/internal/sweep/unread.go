package sweep

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/record"
	"cnictl/tui/show"
)

// mostNamed is how many unreadable nodes are named for each reason.
const mostNamed = 2

// Unread says how many nodes could not be read for which reason, the most frequent first. It
// names some of each, and the command that lists all. A single node gets its own message.
func Unread(f *cli.Factory, errs []document.NodeError) string {
	var text string
	if len(errs) == 1 {
		text = errs[0].Node + ": " + errs[0].Message
	} else {
		text = strings.Join(byReason(errs, f.Recording != nil), ", ")
	}
	if slices.ContainsFunc(errs, func(e document.NodeError) bool { return !slices.Contains(answered, e.Reason) }) {
		text += " (list them: " + f.Name + " nodes --filter 'reading!=live'" + f.SameNodes() + ")"
	}
	return text
}

// byReason counts the nodes by reason: "timeout 6 (a, b, 4 more)". Names lose their common
// domain.
func byReason(errs []document.NodeError, recorded bool) []string {
	domain := show.Domain(func(yield func(string) bool) {
		for _, e := range errs {
			if !yield(e.Node) {
				return
			}
		}
	})
	nodes := map[introspect.Reason][]string{}
	for _, e := range errs {
		nodes[e.Reason] = append(nodes[e.Reason], strings.TrimSuffix(e.Node, domain))
	}
	reasons := slices.SortedFunc(maps.Keys(nodes), func(a, b introspect.Reason) int {
		return cmp.Or(cmp.Compare(len(nodes[b]), len(nodes[a])), cmp.Compare(a, b))
	})
	var parts []string
	for _, reason := range reasons {
		text, names := fleet.ReasonText(reason), nodes[reason]
		if recorded && reason == introspect.ReasonNotServed {
			text = record.NotIncluded
		}
		if more := len(names) - mostNamed; more > 0 {
			names = append(names[:mostNamed:mostNamed], strconv.Itoa(more)+" more")
		}
		parts = append(parts, fmt.Sprintf("%s %d (%s)", text, len(nodes[reason]), strings.Join(names, ", ")))
	}
	return parts
}

// answered are the error reasons of nodes that are up but do not serve what was asked for.
var answered = []introspect.Reason{introspect.ReasonNoEndpoint, introspect.ReasonNotFound, introspect.ReasonNotServed}

// interrupted is the error of a command that the user interrupted while so many nodes were
// unread.
func interrupted(unread, nodes int) *cli.Error {
	e := cli.Exit(cli.ExitInterrupted)
	if unread > 0 {
		e.What = fmt.Sprintf("interrupted: %d of %s not read", unread, human.Plural(nodes, "node was", "nodes were"))
	}
	return e
}
