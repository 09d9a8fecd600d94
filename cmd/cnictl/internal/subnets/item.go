package subnets

import (
	"time"

	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/store"
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
	if f.Readings > 1 {
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
}

// Blocks returns the /28s of a subnet by address; none if its range is not valid in a VPC.
func Blocks(u store.SubnetUse) []document.SubnetBlock {
	out := []document.SubnetBlock{}
	for i, use := range inventory.SubnetBlocks(u) {
		b := document.SubnetBlock{Prefix: inventory.PrefixAt(u.Range, i), Use: uses[use]}
		if known, ok := inventory.BlockAt(u, i); ok {
			b.Held, b.Used, b.Node = known.Held, known.Used, known.Node
		}
		out = append(out, b)
	}
	return out
}
