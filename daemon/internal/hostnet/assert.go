package hostnet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/rtnl"
)

// Objects of a [Loss], labels of a metric beside those of [rules.Repair].
const (
	ObjectENILink      = "eni-link"
	ObjectENIAddress   = "eni-address"
	ObjectENIRoute     = "eni-route"
	ObjectENIRule      = "eni-rule"
	ObjectNodeRule     = "node-rule"
	ObjectPrimaryLink  = "primary-link"
	ObjectSysctl       = "sysctl"
	ObjectPacketFilter = "packet-filter"
)

// Loss is something of the node or of an ENI that is not as it was made.
type Loss struct {
	Object string // one of the objects above
	Text   string // what, in a few words
}

// View is what rtnetlink shows of the node in one family.
type View struct {
	ipv6      bool
	links     []rtnl.Link
	addresses []rtnl.Address
	routes    []rtnl.Route // of all tables
	rules     []rules.IPRule
}

// View reads the node once: pods and ENIs are compared with the same picture.
func (h *Host) View(_ context.Context, ipv6 bool) (*View, error) {
	v := &View{ipv6: ipv6}
	err := with(func(c *rtnl.Conn) (err error) {
		if v.links, err = c.Links(); err != nil {
			return err
		}
		if v.addresses, err = c.Addresses(familyBy(ipv6)); err != nil {
			return err
		}
		if v.routes, err = c.AllRoutes(familyBy(ipv6)); err != nil {
			return err
		}
		v.rules, err = ipRules(c, familyBy(ipv6))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the node's links, addresses, routes and rules: %w", err)
	}
	return v, nil
}

// Pods is the part of a view that pods are compared with.
func (v *View) Pods() rules.HostView {
	out := rules.HostView{Links: make([]rules.HostLink, len(v.links)), Routes: make([]rules.HostRoute, len(v.routes)), Rules: v.rules}
	for i, l := range v.links {
		out.Links[i] = rules.HostLink{Name: l.Name, Kind: l.Kind, Index: l.Index, Parent: l.Parent, MAC: l.MAC, Up: up(l)}
	}
	for i, r := range v.routes {
		out.Routes[i] = rules.HostRoute{Dst: r.Dst, Gateway: r.Gateway, Link: r.Link, Table: r.Table}
	}
	return out
}

// Link finds the link with a MAC, whatever its name.
func (v *View) Link(mac string) (index int32, ok bool) {
	want, err := parseMAC(mac)
	if err != nil {
		return 0, false
	}
	l, ok := pickLink(v.links, want)
	return l.Index, ok
}

func up(l rtnl.Link) bool { return l.Flags&unix.IFF_UP != 0 }

func (v *View) table(table int) (out []rtnl.Route) {
	for _, r := range v.routes {
		if r.Table == table {
			out = append(out, r)
		}
	}
	return out
}

// LostOfENI lists what a secondary ENI that was set up lacks; [Host.SetupENI] brings it
// back. One whose link is gone lacks nothing: it is being detached.
func (v *View) LostOfENI(in rules.ENIInput) (out []Loss) {
	mac, err := parseMAC(in.MAC)
	if err != nil || in.Validate() != nil {
		return nil
	}
	link, ok := pickLink(v.links, mac)
	if !ok {
		return nil
	}
	want := rules.ENI(in)
	now := eniView{link: link, table: v.table(want.Routes[0].Table), main: v.table(netnames.MainTable), rules: v.rules}
	for _, a := range v.addresses {
		if a.Link == link.Index {
			now.addresses = append(now.addresses, a)
		}
	}
	var b rtnl.Batch
	now.change(&b, in, want)
	if b.Len() == 0 {
		return nil
	}
	return now.losses(in, want)
}

// losses says what of an ENI differs.
func (v eniView) losses(in rules.ENIInput, want rules.ENIState) (out []Loss) {
	lost := func(object, format string, args ...any) {
		out = append(out, Loss{object, fmt.Sprintf(format, args...)})
	}
	if !up(v.link) {
		lost(ObjectENILink, "link %s of an ENI was down", v.link.Name)
	}
	if want.MTU != 0 && v.link.MTU != want.MTU {
		lost(ObjectENILink, "link %s of an ENI had MTU %d", v.link.Name, v.link.MTU)
	}
	if want.Address.IsValid() && !slices.ContainsFunc(v.addresses, func(a rtnl.Address) bool { return a.Prefix == want.Address }) {
		lost(ObjectENIAddress, "address %s of %s was missing", want.Address, v.link.Name)
	}
	for _, a := range v.addresses {
		if want.Address.IsValid() && a.Prefix != want.Address && a.Prefix.Addr().IsGlobalUnicast() {
			lost(ObjectENIAddress, "%s had the further address %s", v.link.Name, a.Prefix)
		}
	}
	for _, r := range want.Routes {
		if !slices.Contains(v.table, netlinkRoute(r, v.link.Index)) {
			lost(ObjectENIRoute, "route %s was missing", r)
		}
	}
	if want.Rule != nil && !v.hasRule(in, *want.Rule) {
		lost(ObjectENIRule, "rule %s was missing", oneLine(*want.Rule))
	}
	if len(out) == 0 {
		lost(ObjectENIRoute, "a route of %s was in the way", v.link.Name)
	}
	return out
}

func oneLine(r rules.IPRule) string { return strings.ReplaceAll(r.String(), "\t", " ") }

// LostOfNode lists what of the node's own state is gone that shows without running a
// program; [Host.SetupNode] brings it back. v is of the cluster's family. Settings that
// could not be made are left out.
func (h *Host) LostOfNode(v *View, in rules.NodeInput) []Loss { return h.lostOfNode(v, in, false) }

// StillLostOfNode lists what SetupNode did not bring back, with such settings.
func (h *Host) StillLostOfNode(v *View, in rules.NodeInput) []Loss { return h.lostOfNode(v, in, true) }

func (h *Host) lostOfNode(v *View, in rules.NodeInput, readOnly bool) (out []Loss) {
	mac, err := parseMAC(in.PrimaryMAC)
	if err != nil {
		return nil
	}
	link, ok := pickLink(v.links, mac)
	if !ok {
		return nil
	}
	want, err := h.wanted(in, link)
	if err != nil {
		return nil // the start has said so
	}
	if want.MTU != 0 && link.MTU != want.MTU {
		out = append(out, Loss{ObjectPrimaryLink, fmt.Sprintf("MTU of %s was %d", link.Name, link.MTU)})
	}
	add, remove := rules.DiffNodeRules(v.rules, want.IPRules, v.ipv6)
	for _, r := range add {
		out = append(out, Loss{ObjectNodeRule, "rule " + oneLine(r) + " was missing"})
	}
	for _, r := range remove {
		out = append(out, Loss{ObjectNodeRule, "rule " + oneLine(r) + " was in the way"})
	}
	for _, s := range want.Sysctls {
		now, err := os.ReadFile(filepath.Join(h.opts.ProcSys, s.Path()))
		if value := strings.TrimSpace(string(now)); err == nil && value != s.Value && (readOnly || !h.readOnly.has(s.Path())) {
			out = append(out, Loss{ObjectSysctl, strings.Join(s.Key, ".") + " was " + value})
		}
	}
	return out
}

// repairBatch bounds the messages of one send: see [rtnl.Batch].
const repairBatch = 200

// Repair brings back what was taken from pods and returns what it brought back. What
// somebody else brought back meanwhile counts too. An error does not end it: a link may
// have gone meanwhile.
func (h *Host) Repair(_ context.Context, list []rules.Repair) (done []rules.Repair, _ error) {
	var errs []error
	err := with(func(c *rtnl.Conn) error {
		for part := range slices.Chunk(list, repairBatch) {
			var b rtnl.Batch
			for _, r := range part {
				h.appendRepair(&b, r)
			}
			if err := c.Do(&b); err != nil {
				var failed *rtnl.Error
				if !errors.As(err, &failed) {
					return err
				}
				errs = append(errs, fmt.Errorf("%s: %w", part[failed.Index], err))
			}
			for i, r := range part {
				if e := b.Errno(i); e != 0 && e != unix.EEXIST && e != unix.ENOENT {
					continue
				}
				done = append(done, r)
				if r.VLAN != nil {
					h.setDevice(c, r.VLAN.Name, r.Pod.Is4())
				}
			}
		}
		return nil
	})
	return done, errors.Join(append(errs, err)...)
}

func (h *Host) appendRepair(b *rtnl.Batch, r rules.Repair) {
	switch {
	case r.Up != 0:
		b.LinkUp(r.Up)
	case r.MAC != nil:
		b.LinkMAC(r.MAC.Index, r.MAC.MAC)
	case r.VLAN != nil:
		b.VLAN(r.VLAN.Name, r.VLAN.Trunk, r.VLAN.VLAN, r.VLAN.MAC)
		b.Tolerate(unix.EEXIST)
	case r.Route != nil:
		b.RouteReplace(netlinkHostRoute(*r.Route))
	case r.Add != nil:
		b.RuleAdd(netlinkRule(*r.Add))
		b.Tolerate(unix.EEXIST)
	default:
		b.RuleDel(netlinkRule(*r.Remove))
		b.Tolerate(unix.ENOENT)
	}
}

// setDevice makes the settings of a branch ENI's device before it goes up: the node does
// not configure itself by what comes in there. A kernel without IPv6 has none of them.
// Where /proc/sys is read-only an IPv4 pod's device gets no address of IPv6 at least, and
// so asks no router.
func (h *Host) setDevice(c *rtnl.Conn, name string, ipv4 bool) {
	if ipv4 {
		if err := noIPv6Address(c, name); err != nil {
			h.opts.Log.Warn("device of a branch ENI may get an address of IPv6", "link", name, "error", err)
		}
	}
	for _, s := range []rules.Sysctl{
		{Key: []string{"net", "ipv6", "conf", name, "accept_ra"}, Value: "0"},
		{Key: []string{"net", "ipv6", "conf", name, "accept_redirects"}, Value: "1"},
		{Key: []string{"net", "ipv6", "conf", name, "forwarding"}, Value: "0"},
	} {
		path := filepath.Join(h.opts.ProcSys, s.Path())
		now, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) || err == nil && strings.TrimSpace(string(now)) == s.Value {
			continue
		}
		if err := os.WriteFile(path, []byte(s.Value), 0); err != nil {
			h.opts.Log.Warn("kernel setting of a branch ENI's device cannot be made", "sysctl", s.String(), "error", err)
		}
	}
}

// noIPv6Address keeps the kernel from making a link-local address for a link that is down.
func noIPv6Address(c *rtnl.Conn, name string) error {
	link, found, err := c.LinkByName(name)
	if err != nil || !found {
		return err
	}
	var b rtnl.Batch
	b.LinkNoIPv6Address(link.Index)
	b.Tolerate(unix.EAFNOSUPPORT)
	return c.Do(&b)
}

func netlinkHostRoute(r rules.HostRoute) rtnl.Route {
	out := rtnl.Route{Dst: r.Dst, Gateway: r.Gateway, Link: r.Link, Table: r.Table}
	if !r.Gateway.IsValid() {
		out.Scope = onLink(r.Dst.Addr())
	}
	return out
}

// TakeBack removes what Repair made for pods that ended meanwhile, and nothing else.
func (h *Host) TakeBack(_ context.Context, list []rules.Repair) error {
	return with(func(c *rtnl.Conn) error {
		var b rtnl.Batch
		for _, r := range slices.Backward(list) {
			switch {
			case r.VLAN != nil:
				b.LinkDelName(r.VLAN.Name)
				b.Tolerate(unix.ENODEV)
			case r.Route != nil:
				b.RouteDel(netlinkHostRoute(*r.Route))
				b.Tolerate(unix.ESRCH)
			case r.Add != nil:
				b.RuleDel(netlinkRule(*r.Add))
				b.Tolerate(unix.ENOENT)
			}
		}
		return c.Do(&b)
	})
}
