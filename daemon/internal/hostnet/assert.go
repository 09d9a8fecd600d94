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

	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/netstate"
	"cnictl/daemon/rtnl"
)

// Objects of a [Loss]; with those of [rules.Repair], the label values of a metric.
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

// Loss is part of the node's or an ENI's state that is no longer as it was set up.
type Loss struct {
	Object string // one of the objects above
	Text   string // a short description
}

// View is the node's rtnetlink state in one family.
type View struct {
	ipv6 bool
	netstate.State
}

// View reads the node once, so that pods and ENIs are compared with the same state.
func (h *Host) View(_ context.Context, ipv6 bool) (*View, error) {
	v := &View{ipv6: ipv6}
	err := with(func(c *rtnl.Conn) (err error) {
		v.State, err = readState(c, familyBy(ipv6))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the node's links, addresses, routes and rules: %w", err)
	}
	return v, nil
}

// LinkOf finds the link with a MAC, whatever its name.
func (v *View) LinkOf(mac string) (index int32, ok bool) {
	want, err := parseMAC(mac)
	if err != nil {
		return 0, false
	}
	l, ok := pickLink(v.Links, want)
	return l.Index, ok
}

// LostOfENI lists what a set-up secondary ENI has lost; [Host.SetupENI] restores it. An ENI
// without a link has lost nothing: it is being detached.
func (v *View) LostOfENI(in rules.ENIInput) (out []Loss) {
	mac, err := parseMAC(in.MAC)
	if err != nil || in.Validate() != nil {
		return nil
	}
	link, ok := pickLink(v.Links, mac)
	if !ok {
		return nil
	}
	for _, c := range rules.DiffENI(v.State, link, in, rules.ENI(in, link.Index)) {
		// Skip deletions of routes that only another change will create.
		if c.Do != netstate.DelRoute || slices.Contains(v.Routes, c.Route) {
			out = append(out, Loss{eniObject(c), c.String()})
		}
	}
	return out
}

func eniObject(c netstate.Change) string {
	switch c.Do {
	case netstate.AddAddress, netstate.DelAddress:
		return ObjectENIAddress
	case netstate.PutRoute, netstate.DelRoute:
		return ObjectENIRoute
	case netstate.AddRule:
		return ObjectENIRule
	}
	return ObjectENILink
}

// LostOfNode lists what the node's own state has lost, as far as that shows without running
// a program; [Host.SetupNode] restores it. v is of the cluster's family. Kernel settings
// that could not be set are left out.
func (h *Host) LostOfNode(v *View, in rules.NodeInput) []Loss { return h.lostOfNode(v, in, false) }

// StillLostOfNode lists what SetupNode did not restore, including such settings.
func (h *Host) StillLostOfNode(v *View, in rules.NodeInput) []Loss { return h.lostOfNode(v, in, true) }

func (h *Host) lostOfNode(v *View, in rules.NodeInput, readOnly bool) (out []Loss) {
	mac, err := parseMAC(in.PrimaryMAC)
	if err != nil {
		return nil
	}
	link, ok := pickLink(v.Links, mac)
	if !ok {
		return nil
	}
	want, err := h.wanted(in, link)
	if err != nil {
		return nil // the start reported it
	}
	if want.MTU != 0 && link.MTU != want.MTU {
		out = append(out, Loss{ObjectPrimaryLink, fmt.Sprintf("MTU of %s was %d", link.Name, link.MTU)})
	}
	for _, c := range rules.DiffNodeRules(v.Rules, want.IPRules, v.ipv6) {
		out = append(out, Loss{ObjectNodeRule, c.String()})
	}
	for _, s := range want.Sysctls {
		now, err := os.ReadFile(filepath.Join(h.opts.ProcSys, s.Path))
		if value := strings.TrimSpace(string(now)); err == nil && value != s.Value && (readOnly || !h.readOnly.has(s.Path)) {
			out = append(out, Loss{ObjectSysctl, s.Name() + " was " + value})
		}
	}
	return out
}

// repairBatch bounds the messages of one send: see [rtnl.Batch].
const repairBatch = 200

// Repair restores what pods have lost and returns what was restored, including what others
// restored meanwhile. It continues after an error, as a link may have gone meanwhile.
func (h *Host) Repair(_ context.Context, list []rules.Repair) (done []rules.Repair, _ error) {
	var errs []error
	err := with(func(c *rtnl.Conn) error {
		for part := range slices.Chunk(list, repairBatch) {
			var b rtnl.Batch
			for _, r := range part {
				b.Change(r.Change)
			}
			if err := c.Do(&b); err != nil {
				var failed *rtnl.Error
				if !errors.As(err, &failed) {
					return err
				}
				errs = append(errs, fmt.Errorf("%s: %w", part[failed.Index], err))
			}
			for i, r := range part {
				if !b.Took(i) {
					continue
				}
				done = append(done, r)
				if r.Do == netstate.AddVLAN {
					h.setDevice(c, r.Link.Name, r.Pod.Is4())
				}
			}
		}
		return nil
	})
	return done, errors.Join(append(errs, err)...)
}

// setDevice sets up a branch ENI's device before it goes up, so that the node does not
// configure itself from what it receives there. A kernel without IPv6 has none of the
// settings. If /proc/sys is read-only, an IPv4 pod's device at least gets no IPv6 address,
// and so solicits no router.
func (h *Host) setDevice(c *rtnl.Conn, name string, ipv4 bool) {
	if ipv4 {
		if err := noIPv6Address(c, name); err != nil {
			h.opts.Log.Warn("device of a branch ENI may get an IPv6 address", "link", name, "error", err)
		}
	}
	for _, s := range []netstate.Sysctl{
		{Path: netstate.IPv6Setting(name, "accept_ra"), Value: "0"},
		{Path: netstate.IPv6Setting(name, "accept_redirects"), Value: "1"},
		{Path: netstate.IPv6Setting(name, "forwarding"), Value: "0"},
	} {
		path := filepath.Join(h.opts.ProcSys, s.Path)
		now, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) || err == nil && strings.TrimSpace(string(now)) == s.Value {
			continue
		}
		if err := os.WriteFile(path, []byte(s.Value), 0); err != nil {
			h.opts.Log.Warn("cannot apply a kernel setting to a branch ENI's device", "sysctl", s.String(), "error", err)
		}
	}
}

// noIPv6Address keeps the kernel from generating a link-local address for a link that is
// still down.
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

// TakeBack undoes only what Repair restored for pods that ended meanwhile.
func (h *Host) TakeBack(_ context.Context, list []rules.Repair) error {
	return with(func(c *rtnl.Conn) error {
		var b rtnl.Batch
		for _, r := range slices.Backward(list) {
			if undo, ok := r.Undo(); ok {
				b.Change(undo)
			}
		}
		return c.Do(&b)
	})
}
