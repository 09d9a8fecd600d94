package hostnet

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/netstate"
	"cnictl/daemon/rtnl"
)

// PodHashes returns the hashes in the names of pods' host links.
func (v *View) PodHashes() map[string]bool {
	digits := len(netnames.Hash("", "", 0))
	out := map[string]bool{}
	for _, name := range podLinkNames(v.Links) {
		out[name[len(name)-digits:]] = true
	}
	return out
}

// IdleDevices returns the VLAN ids of the branch ENI devices that serve no pod: no route in
// the device's table leads to a pod's link, and neither a rule of strict mode nor a rule
// for an address with a route to a pod's link leads to the table.
func (v *View) IdleDevices() map[int]bool {
	out := map[int]bool{}
	tables := map[int]int{} // VLAN ids
	for _, l := range v.Links {
		if vlan, ok := netnames.VLANOfDevice(l.Name); ok {
			out[vlan] = true
			table, _ := netnames.BranchTable(vlan)
			tables[table] = vlan
		}
	}
	if len(out) == 0 {
		return out
	}
	pods := podLinkNames(v.Links)
	names := map[string]bool{}
	for _, name := range pods {
		names[name] = true
	}
	led := map[netip.Prefix]bool{}
	for _, r := range v.Routes {
		if pods[r.Link] != "" {
			delete(out, tables[r.Table])
			led[r.Dst] = true
		}
	}
	for _, r := range v.Rules {
		if names[r.InLink] || r.From.IsValid() && led[r.From] {
			delete(out, tables[r.Table])
		}
	}
	return out
}

// DropDevice removes a branch ENI's device as seen in a view, and the rules that lead to
// its table. If another device has its name by now, DropDevice removes nothing, because
// that device's pod has the same rules.
func (h *Host) DropDevice(_ context.Context, v *View, vlan int) error {
	table, ok := netnames.BranchTable(vlan)
	if !ok {
		return fmt.Errorf("remove the device of a branch ENI: no such VLAN id: %d", vlan)
	}
	name := netnames.VLANDevice(vlan)
	i := slices.IndexFunc(v.Links, func(l netstate.Link) bool { return l.Name == name })
	if i < 0 {
		return nil
	}
	dropped := false
	err := with(func(c *rtnl.Conn) error {
		now, found, err := c.LinkByName(name)
		if err != nil || !found || now.Index != v.Links[i].Index || now.MAC != v.Links[i].MAC {
			return err
		}
		list, err := c.Rules(familyBy(v.ipv6))
		if err != nil {
			return err
		}
		var b rtnl.Batch
		b.LinkDel(now.Index)
		b.Tolerate(unix.ENODEV)
		for _, r := range list {
			if r.Table == table && (r.Priority == netnames.RuleBranch || r.Priority == netnames.RuleFromPod) && !r.Other {
				b.RuleDel(r)
				b.Tolerate(unix.ENOENT)
			}
		}
		dropped = true
		return c.Do(&b)
	})
	if err != nil {
		return fmt.Errorf("remove the device of a branch ENI whose pod is gone: %w", err)
	}
	if dropped {
		h.opts.Log.Info("device of a branch ENI removed: its pod ended without a DEL", "link", name)
	}
	return nil
}
