package lists

import (
	"net/netip"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/components"
	"cnictl/tui/draw"
	"cnictl/tui/pages"
	"cnictl/tui/query"
	"cnictl/tui/show"
	"cnictl/tui/tables"
)

// ENI is the screen of one ENI.
type ENI struct {
	node, id string
	first    netip.Addr // the address to select first
	docs     pages.Documents
	table    *components.Table[address]
	frame    components.Frame
	scroll   components.Scroll
	eni      *introspect.NodeENI
	names    pages.NodeNames
	fleet    uint64 // generation of the view that names was learned from
}

// NewENI opens the screen of an ENI.
func NewENI(o pages.Open) pages.Page {
	m := &ENI{node: o.Node, id: o.ENI, docs: pages.NewDocuments("eni", o.Node, o.ENI)}
	m.first, _ = netip.ParseAddr(o.IP)
	m.table = components.NewTable(components.TableOptions[address]{
		Columns: addressColumns(), ID: func(a address) string { return a.Address },
		Fault: func(a address) bool { return a.State == introspect.AddressCooling },
		Role:  addressRole, Sort: addressKeys(), Order: "address", Show: addressCell, Sparse: map[string]string{"cidr": ""},
		Empty: "No addresses for pods on this ENI.", Rows: "addresses",
	})
	m.frame.Bodies = []components.Body{m.table, &m.scroll}
	return m
}

// address is one address of the ENI, or the unrecorded rest of a prefix too large to list.
type address struct {
	inventory.HeldAddress
	Left string // time until a cooling address is free
}

// rest reports whether the row is the free rest of a prefix.
func (a address) rest() bool {
	return a.CIDR.Bits() < a.CIDR.Addr().BitLen() && a.Address == a.CIDR.String()
}

// addresses lists every address of prefixes of at most 16 addresses. Of larger prefixes, it
// lists those with a record, and the rest in one row.
func addresses(e introspect.NodeENI, cooldown time.Duration, now time.Time) []address {
	var out []address
	recorded := map[string]bool{}
	for _, item := range document.FlattenAddresses("", []introspect.NodeENI{e}) {
		a := address{HeldAddress: inventory.HeldAddress{AddressItem: item, At: &now}}
		if a.rest() && a.CIDR.Addr().BitLen()-a.CIDR.Bits() <= 4 {
			for ip := a.CIDR.Masked().Addr(); a.CIDR.Contains(ip); ip = ip.Next() {
				if a.Address, a.Count = ip.String(), 1; !recorded[a.Address] {
					out = append(out, a)
				}
			}
			continue
		}
		recorded[a.Address] = true
		if a.State == introspect.AddressCooling && a.UnassignedAt != nil && cooldown > 0 {
			free := a.UnassignedAt.Add(cooldown)
			a.Left = show.Until(&free, now)
		}
		out = append(out, a)
	}
	return out
}

// stateText returns a state, with the remaining time if the address is cooling.
func stateText(a address) string {
	switch {
	case a.rest():
		return show.Count(a.Count) + " free"
	case a.Left != "":
		return a.State + " " + a.Left
	}
	return a.State
}

func addressText(a address) string {
	if a.rest() {
		return "the rest of " + a.Address
	}
	return a.Address
}

// addressCell hides the CIDR of an address that is not part of a prefix. Filters still use it.
func addressCell(a address, column string) (string, bool) {
	return show.Unknown, column == "cidr" && a.CIDR.IsSingleIP()
}

// addressColumns returns the columns of cnictl ips. Ages count by the time in the row.
func addressColumns() []query.Column[address] {
	all := query.Of(tables.Addresses(false), func(a address) inventory.HeldAddress { return a.HeldAddress })
	out := query.Arrange(all,
		query.Shown{Name: "address"}, query.Shown{Name: "state"}, query.Shown{Name: "pod", Least: 12},
		query.Shown{Name: "for", Drop: 2}, query.Shown{Name: "cidr", Drop: 3})
	for i, c := range out {
		switch c.Name {
		case "address":
			out[i].Text = addressText
			out[i].Also = func(a address) string { return a.Address }
			out[i].Number = func(a address) (float64, bool) {
				n, ok := c.Number(a)
				if a.rest() {
					n *= 2 // the rest of a prefix comes last
				}
				return n, ok
			}
		case "state":
			out[i].Text = stateText
			out[i].Also = func(a address) string { return a.State }
		}
	}
	return out
}

func addressKeys() []components.SortKey {
	return []components.SortKey{
		{Key: "n", Column: "address", Title: "address"}, {Key: "s", Column: "state", Title: "state"},
		{Key: "p", Column: "pod", Title: "pod"}, {Key: "a", Column: "for", Title: "age"},
	}
}

func addressRole(a address, column string) draw.Role {
	switch {
	case column == "state" && a.State == introspect.AddressAssigned:
		return draw.Good
	case column == "state" && a.State == introspect.AddressCooling:
		return draw.Warn
	case a.State == introspect.AddressFree:
		return draw.Faint
	case column == "cidr":
		return draw.Faint
	}
	return draw.Text
}

// findENI returns the ENI with an ID, nil if none.
func findENI(enis []introspect.NodeENI, id string) *introspect.NodeENI {
	for i := range enis {
		if enis[i].ID == id {
			return &enis[i]
		}
	}
	return nil
}

// Name implements pages.Page.
func (m *ENI) Name() string { return "eni" }

// Title is the breadcrumb.
func (m *ENI) Title() string { return m.id }

// Focus samples the ENI's node first.
func (m *ENI) Focus(pages.Context) watch.Focus { return watch.Focus{Open: m.node} }

// Row is the address under the cursor, or the ENI.
func (m *ENI) Row(pages.Context) any {
	if m.eni == nil {
		return nil
	}
	if a, ok := m.table.Row(); ok && m.List() != nil && !a.rest() {
		ip, _ := netip.ParseAddr(a.Address) // it was formatted from an address
		return introspect.NodeAddress{
			Address: ip, State: a.State, PodNamespace: a.PodNamespace, PodName: a.PodName, AssignedAt: a.AssignedAt, UnassignedAt: a.UnassignedAt,
		}
	}
	return *m.eni
}

// List is the table of addresses while that is focused.
func (m *ENI) List() components.List { return m.frame.List() }
