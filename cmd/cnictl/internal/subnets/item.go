package subnets

import (
	"time"

	"cnictl/cmd/cnictl/internal/doctor"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/store"
	"cnictl/doctor/causes"
	"cnictl/doctor/causes/catalogue"
)

// Item returns the document of a subnet.
func Item(r *inventory.Subnet) document.SubnetItem {
	u, f := r.SubnetUse, r.Forecast
	out := document.SubnetItem{
		ID: u.ID, Zone: u.Zone, CIDR: u.CIDR, Available: u.Available, AsOf: u.AsOf, Held: u.Held, Wasted: u.Wasted,
		Others: inventory.OtherAddresses(u), FreeBlocks: inventory.FreeBlocks(u), Nodes: u.Nodes, ENIs: u.ENIs, Readings: f.Readings,
		FragmentedBlocks: inventory.FragmentedBlocks(u),
	}
	if usable := inventory.Usable(u.Range); usable > 0 {
		out.Usable = &usable
	}
	if f.Measured() {
		out.ChangePerHour, out.MeasuredSeconds = &f.PerHour, seconds(f.Over)
	}
	out.Left = f.Words()
	if left, ok := f.Seconds(); ok {
		out.LeftSeconds = &left
	}
	if f.Early > 0 {
		out.LeftEarlySeconds = seconds(f.Early)
	}
	if f.Late > 0 {
		out.LeftLateSeconds = seconds(f.Late)
	}
	return out
}

func seconds(d time.Duration) *float64 {
	s := d.Seconds()
	return &s
}

// uses are the words that documents use for what a /28 holds.
var uses = map[store.BlockUse]string{
	0: document.BlockUnknown, store.BlockPrefix: document.BlockPrefix, store.BlockMixed: document.BlockFragmented,
	store.BlockPrimary: document.BlockPrimary, inventory.ReservedBlock: document.BlockReserved,
	inventory.FreeBlock: document.BlockFree, inventory.OthersBlock: document.BlockOthers,
}

// Blocks returns the /28s of a subnet by address; none if its range is not valid in a VPC.
func Blocks(m inventory.SubnetMap) []document.SubnetBlock {
	out := make([]document.SubnetBlock, 0, len(m.Cells))
	for _, c := range m.Cells {
		b := document.SubnetBlock{
			Prefix: c.Prefix, Use: uses[c.Use], Held: c.Held, Used: c.Used, Node: c.Node,
			Holders: []document.BlockHolder{}, Owners: []document.BlockOwner{},
		}
		for _, h := range m.In(c.Prefix) {
			b.Holders = append(b.Holders, document.BlockHolder{Node: h.Node.Metadata.Name, Held: h.Held, Used: h.Used})
		}
		if m.Seen {
			b.Others = new(c.Taken())
		}
		for _, o := range c.Others {
			b.Owners = append(b.Owners, document.BlockOwner{Name: o.Name, Interface: o.Interface, Addresses: o.Addresses})
		}
		out = append(out, b)
	}
	return out
}

// owners returns who else has addresses in a subnet.
func owners(m inventory.SubnetMap) []document.SubnetOwner {
	out := []document.SubnetOwner{}
	for _, o := range m.Owners() {
		out = append(out, document.SubnetOwner(o))
	}
	return out
}

// freeing returns which nodes to terminate, and how.
func freeing(d inventory.SubnetDrain, of func(*store.Node) int) *document.BlockFreeing {
	out := &document.BlockFreeing{
		Wanted: d.Want, Blocks: d.Blocks, Nodes: []document.FreeingNode{}, Least: d.Least, Exact: d.Least == len(d.Nodes),
		Addresses: d.Addresses, Pods: d.Pods, Warm: d.Warm, NewAddresses: d.New(), Steps: []document.FreeingStep{},
	}
	for _, n := range d.Nodes {
		_, group := store.NodeGroup(n.Object)
		one := document.FreeingNode{Node: n.Metadata.Name, Group: group, Pods: n.Assigned, Addresses: of(n)}
		last := catalogue.TerminateInstance
		if o := n.Object; o != nil {
			switch one.InstanceID = o.InstanceID; {
			case o.Labels[store.KarpenterPool] != "":
				last = catalogue.TerminateKarpenters
			case one.Group != "":
				last = catalogue.TerminateInGroup
			}
		}
		out.Nodes = append(out.Nodes, one)
		names := map[string]string{"NODE": one.Node, "INSTANCE": one.InstanceID}
		for _, fix := range []catalogue.Fix{catalogue.DrainNode, last} {
			fix.Command = causes.Fill(fix.Command, names)
			out.Steps = append(out.Steps, document.FreeingStep{Node: one.Node, CauseFix: doctor.FixOf(fix)})
		}
	}
	return out
}
