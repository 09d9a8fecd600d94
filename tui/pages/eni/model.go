// Package eni is the screen of one network interface: its addresses with their pods,
// its prefixes, its route table and rules.
package eni

import (
	"net/netip"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/query"
	"cnictl/daemon/fleet/show"
	"cnictl/tui/components"
	"cnictl/tui/components/prose"
	"cnictl/tui/pages"
	"cnictl/tui/pages/names"
	"cnictl/tui/pages/panes"
	"cnictl/tui/pages/reading"
	"cnictl/tui/source"
	"cnictl/tui/theme"
)

// Panes of the screen.
const (
	paneAddresses = iota
	paneFacts
)

// Model is the screen of one ENI.
type Model struct {
	node, id string
	first    netip.Addr // the address to begin with
	docs     reading.Documents
	table    *components.Table[address]
	frame    panes.Frame
	scroll   prose.Scroll
	eni      *introspect.NodeENI
	names    names.Nodes
	fleet    uint64 // generation that the names were learnt of
}

// New opens the screen of an ENI.
func New(o pages.Open) pages.Page {
	m := &Model{node: o.Node, id: o.ENI, docs: reading.NewDocuments("eni", o.Node, o.ENI)}
	m.first, _ = netip.ParseAddr(o.IP)
	m.table = components.NewTable(components.TableOptions[address]{
		Columns: columns(), ID: func(a address) string { return a.Key },
		Fault: func(a address) bool { return a.State == introspect.AddressCooling },
		Role:  role, Sort: sortKeys(), Order: "address", Show: shown,
		Empty: "No addresses for pods on this ENI.",
	})
	return m
}

// address is one address of the ENI, or the free rest of a block too large to list.
type address struct {
	Key   string
	Addr  netip.Addr
	Block netip.Prefix
	State string
	Pod   introspect.PodRef
	Since *time.Time // in this state
	Rest  int        // how many addresses the row stands for beyond one
	Left  string     // until a cooling one is free
	Age   string
}

// addresses lists every address of blocks of at most 16, of larger ones those that have
// a record and the rest in one row.
func addresses(e introspect.NodeENI, cooldown time.Duration, now time.Time) []address {
	var out []address
	for _, c := range e.CIDRs {
		known := make(map[netip.Addr]introspect.NodeAddress, len(c.Addresses))
		for _, a := range c.Addresses {
			known[a.Address] = a
		}
		if c.CIDR.Addr().BitLen()-c.CIDR.Bits() > 4 {
			for _, a := range c.Addresses {
				out = append(out, of(a, c.CIDR, cooldown, now))
			}
			if rest := c.Total - len(c.Addresses); rest > 0 {
				out = append(out, address{Key: c.CIDR.String(), Addr: c.CIDR.Addr(), Block: c.CIDR, State: introspect.AddressFree, Rest: rest})
			}
			continue
		}
		for a := c.CIDR.Masked().Addr(); c.CIDR.Contains(a); a = a.Next() {
			record, ok := known[a]
			if !ok {
				record = introspect.NodeAddress{Address: a, State: introspect.AddressFree}
			}
			out = append(out, of(record, c.CIDR, cooldown, now))
		}
	}
	return out
}

func of(a introspect.NodeAddress, block netip.Prefix, cooldown time.Duration, now time.Time) address {
	r := address{
		Key: a.Address.String(), Addr: a.Address, Block: block, State: a.State,
		Pod: introspect.PodRef{Namespace: a.PodNamespace, Name: a.PodName}, Since: a.AssignedAt,
	}
	if a.State != introspect.AddressAssigned {
		r.Since = a.UnassignedAt
	}
	r.Age = show.Since(r.Since, now)
	if a.State == introspect.AddressCooling && a.UnassignedAt != nil && cooldown > 0 {
		free := a.UnassignedAt.Add(cooldown)
		r.Left = show.Until(&free, now)
	}
	return r
}

// stateText says a state, of a cooling address with the time that is left.
func stateText(a address) string {
	switch {
	case a.Rest > 0:
		return show.Count(a.Rest) + " free"
	case a.Left != "":
		return a.State + " " + a.Left
	}
	return show.Safe(a.State)
}

func addressText(a address) string {
	if a.Rest > 0 {
		return "the rest of " + a.Block.String()
	}
	return a.Addr.String()
}

// columns: what is before now is before: ages stand in the row, made with its clock.
// shown leaves out the block of an address that is a block of its own: only prefixes are
// worth a look. Filters go by the block all the same.
func shown(a address, column string) (string, bool) {
	return show.Unknown, column == "cidr" && a.Rest == 0 && a.Block.IsSingleIP()
}

func columns() []query.Column[address] {
	return []query.Column[address]{
		{Name: "address", Header: "ADDRESS", Title: "address", Text: addressText, Number: func(a address) (float64, bool) { return ordinal(a), true }},
		{Name: "state", Header: "STATE", Title: "assigned, cooling with the time left, free", Text: stateText},
		{Name: "pod", Header: "POD", Title: "namespace/name of the pod that has it, or had it last", Least: 12, Text: func(a address) string {
			return show.OrUnknown(names.Pod(a.Pod.Namespace, a.Pod.Name))
		}},
		{Name: "for", Header: "FOR", Title: "time in this state", Right: true, Drop: 2, Text: func(a address) string { return show.OrUnknown(a.Age) },
			Number: func(a address) (float64, bool) {
				if a.Since == nil {
					return 0, false
				}
				return -float64(a.Since.Unix()), true
			}},
		{Name: "cidr", Header: "CIDR", Title: "secondary IP or prefix it belongs to", Drop: 3, Text: func(a address) string { return a.Block.String() },
			Number: func(a address) (float64, bool) { return ordinal(a), true }},
	}
}

// ordinal orders addresses as numbers, as well as a float can: within an ENI they differ
// in their last bytes.
func ordinal(a address) float64 {
	v := 0.0
	for _, b := range a.Addr.AsSlice() {
		v = v*256 + float64(b)
	}
	if a.Rest > 0 {
		v *= 2 // the rest of a block stands at the end
	}
	return v
}

func sortKeys() []components.SortKey {
	return []components.SortKey{
		{Key: "n", Column: "address", Title: "address"}, {Key: "s", Column: "state", Title: "state"},
		{Key: "p", Column: "pod", Title: "pod"}, {Key: "a", Column: "for", Title: "age"},
	}
}

func role(a address, column string) theme.Role {
	switch {
	case column == "state" && a.State == introspect.AddressAssigned:
		return theme.Accent
	case column == "state" && a.State == introspect.AddressCooling:
		return theme.Warn
	case a.State == introspect.AddressFree:
		return theme.Faint
	case column == "cidr":
		return theme.Faint
	}
	return theme.Text
}

// find is the ENI among those of the node.
func find(enis []introspect.NodeENI, id string) *introspect.NodeENI {
	for i := range enis {
		if enis[i].ID == id {
			return &enis[i]
		}
	}
	return nil
}

// cooldownOf is how long the node lets addresses rest.
func cooldownOf(s *introspect.Summary) time.Duration {
	if s == nil || s.CooldownSeconds == nil || *s.CooldownSeconds < 0 || *s.CooldownSeconds > 1e6 {
		return 0
	}
	return time.Duration(*s.CooldownSeconds * float64(time.Second))
}

// Name is that of the screen.
func (m *Model) Name() string { return "eni" }

// Title is the breadcrumb.
func (m *Model) Title() string { return show.Safe(m.id) }

// Busy is never: the app takes filters.
func (m *Model) Busy() bool { return false }

// Focus samples the ENI's node first.
func (m *Model) Focus(pages.Context) source.Focus { return source.Focus{Open: m.node} }

// Row is the address under the cursor, or the ENI.
func (m *Model) Row(pages.Context) any {
	if m.eni == nil {
		return nil
	}
	if a, ok := m.table.Row(); ok && m.frame.Focus == paneAddresses && a.Rest == 0 {
		return introspect.NodeAddress{Address: a.Addr, State: a.State, PodNamespace: a.Pod.Namespace, PodName: a.Pod.Name, AssignedAt: assigned(a), UnassignedAt: unassigned(a)}
	}
	return *m.eni
}

func assigned(a address) *time.Time {
	if a.State == introspect.AddressAssigned {
		return a.Since
	}
	return nil
}

func unassigned(a address) *time.Time {
	if a.State != introspect.AddressAssigned {
		return a.Since
	}
	return nil
}

// List is the table of addresses while it has the focus.
func (m *Model) List() components.List {
	if m.frame.Focus == paneAddresses {
		return m.table
	}
	return nil
}
