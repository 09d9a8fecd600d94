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
	ipv6 bool
	netstate.State
}

// View reads the node once: pods and ENIs are compared with the same picture.
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

// LostOfENI lists what a secondary ENI that was set up lacks; [Host.SetupENI] brings it
// back. One whose link is gone lacks nothing: it is being detached.
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
		// A route that will come with another change is not there yet.
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
	link, ok := pickLink(v.Links, mac)
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

// Repair brings back what was taken from pods and returns what it brought back. What
// others brought back meanwhile counts too. An error does not end it: a link may
// have gone meanwhile.
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

// TakeBack removes what Repair made for pods that ended meanwhile, and nothing else.
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
