package sweep

import (
	"testing"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
)

// TestUnread: nodes are grouped by reason, a few of them are named, and long messages are
// printed only for a single node.
func TestUnread(t *testing.T) {
	t.Parallel()
	failed := func(reason introspect.Reason, names ...string) (errs []document.NodeError) {
		for _, n := range names {
			errs = append(errs, document.NodeError{Node: n, Reason: reason, Message: "a long sentence"})
		}
		return errs
	}
	const all = " (list them: cnictl nodes --filter 'reading!=live')"
	for want, errs := range map[string][]document.NodeError{
		"a.x: a long sentence" + all:                                failed(introspect.ReasonTimeout, "a.x"),
		"not JSON 1 (b), timeout 1 (a)" + all:                       append(failed(introspect.ReasonTimeout, "a.x"), failed(introspect.ReasonNotJSON, "b.x")...),
		"timeout 4 (a.x, b.x, 2 more), not JSON 2 (e.y, f.y)" + all: append(failed(introspect.ReasonNotJSON, "e.y", "f.y"), failed(introspect.ReasonTimeout, "a.x", "b.x", "c.x", "d.x")...),
		"not served 2 (a, b)":                                       failed(introspect.ReasonNotServed, "a.x", "b.x"),
	} {
		if got := Unread(&cli.Factory{Name: "cnictl"}, errs); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
