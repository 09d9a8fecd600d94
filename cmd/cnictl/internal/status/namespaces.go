package status

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/introspect/client"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/show"
)

// Limits of what is read and shown about who takes the addresses of a short subnet.
const (
	mostReaders    = 100 // nodes whose addresses are read, those with the most in short subnets
	mostNamespaces = 3   // shown for each subnet
	mostShort      = 3   // subnets they are shown of
	mostInJSON     = 10  // namespaces in documents
)

// fillNamespaces adds to each short subnet the namespaces with the most addresses in it. A reading of
// all nodes has no addresses, so it reads those of the nodes in short subnets; no other status takes
// longer for it.
func fillNamespaces(ctx context.Context, f *cli.Factory, nodes *fleet.Fleet, v *store.View, s *document.FleetStatus) {
	var short []string
	for _, u := range s.Subnets {
		if u.Short {
			short = append(short, u.ID)
		}
	}
	if len(short) == 0 {
		return
	}
	in := func(n *store.Node) (held int) {
		for _, id := range short {
			held += n.HeldIn(id)
		}
		return held
	}
	there := slices.DeleteFunc(slices.Clone(v.Nodes), func(n *store.Node) bool { return n.Assigned == 0 || in(n) == 0 })
	slices.SortStableFunc(there, func(a, b *store.Node) int { return in(b) - in(a) })
	there = there[:min(len(there), mostReaders)]
	if f.Recording == nil {
		there = readAddresses(ctx, f, nodes, there)
	} else {
		recorded := f.Recording.View()
		for i, n := range there {
			if r := recorded.Node(n.Metadata.Name); r != nil {
				there[i] = r
			}
		}
	}
	for i, u := range s.Subnets {
		if u.Short {
			all := inventory.InSubnet(there, u.ID)
			s.Subnets[i].Namespaces = all[:min(len(all), mostInJSON)]
		}
	}
}

// readAddresses reads the addresses of nodes; one that does not answer has none.
func readAddresses(ctx context.Context, f *cli.Factory, nodes *fleet.Fleet, there []*store.Node) []*store.Node {
	names := make([]string, 0, len(there))
	full := make([]document.NodeIPAM, 0, len(there))
	for _, n := range there {
		if n.State == document.StateLive {
			names, full = append(names, n.Metadata.Name), append(full, n.NodeIPAM)
		}
	}
	if len(names) == 0 {
		return nil
	}
	limit, cancel := f.DeadlineFor(ctx, len(names))
	defer cancel()
	nodes.Ask(limit, names, func(ctx context.Context, i int, _ fleet.Target, c *client.Client) error {
		pool, _, err := c.ENIs(ctx, client.DefaultCooldown)
		if err == nil {
			full[i].ENIs = append([]introspect.NodeENI{}, pool.ENIs...)
		}
		return err
	})
	return store.Of(full).Nodes
}

// largest names the namespaces with the most addresses in short subnets, a line for each subnet.
func (fr Frame) largest(all []document.SubnetFill) (lines []string) {
	for _, s := range all {
		if len(s.Namespaces) == 0 || len(lines) == mostShort {
			continue
		}
		var parts []string
		for _, n := range s.Namespaces[:min(len(s.Namespaces), mostNamespaces)] {
			parts = append(parts, fmt.Sprintf("%s %d", show.Safe(show.OrUnknown(n.Namespace)), n.Assigned))
		}
		lines = append(lines, fr.Palette.Paint(paint.Dim, "largest    ")+"in "+show.Safe(s.ID)+": "+strings.Join(parts, ", "))
	}
	return lines
}
