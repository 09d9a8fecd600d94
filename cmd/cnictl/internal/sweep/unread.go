package sweep

import (
	"fmt"
	"slices"
	"strings"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/show"
)

// mostUnread is how many nodes that could not be read are named.
const mostUnread = 3

// Unread names nodes that could not be read with the reasons, up to three, and what lists
// all of them.
func Unread(f *cli.Factory, errs []introspect.NodeError) string {
	var parts []string
	for _, e := range errs[:min(mostUnread, len(errs))] {
		parts = append(parts, show.Safe(e.Node)+": "+show.Safe(e.Message))
	}
	if more := len(errs) - mostUnread; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	text := strings.Join(parts, "; ")
	if slices.ContainsFunc(errs, func(e introspect.NodeError) bool { return !slices.Contains(answered, e.Reason) }) {
		text += " (all of them: " + f.Name + " nodes --filter 'reading!=live')"
	}
	return text
}

// answered are the reasons of nodes that are live and don't serve what was asked for.
var answered = []introspect.Reason{introspect.ReasonNoEndpoint, introspect.ReasonNotFound, introspect.ReasonNotServed}

// interrupted is the end of a command that the user gave up before so many of the nodes
// had been read.
func interrupted(unread, nodes int) *cli.Error {
	e := cli.Exit(cli.ExitInterrupted)
	if unread > 0 {
		e.What = fmt.Sprintf("interrupted: %d of %s not read", unread, show.Plural(nodes, "node was", "nodes were"))
	}
	return e
}
