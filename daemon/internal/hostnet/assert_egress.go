package hostnet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/hostnet/egress"
	"cnictl/daemon/iptables"
	"cnictl/daemon/netstate"
	"cnictl/daemon/rtnl"
)

// Objects of pods' egress, in addition to those of [Loss].
const (
	ObjectEgressLink  = "egress-link"
	ObjectEgressRoute = "egress-route"
	ObjectEgressChain = "egress-chain"
)

// EgressObject returns the object of an egress loss.
func EgressObject(l egress.Loss) string {
	switch l.Kind {
	case egress.LostChain:
		return ObjectEgressChain
	case egress.LostRoute:
		return ObjectEgressRoute
	}
	return ObjectEgressLink
}

// concernsEgress reports whether something that pods' egress needs in the nat table was
// removed. Additions are the plugin's doing.
func concernsEgress(n rtnl.FilterNotice) bool {
	if !n.Gone || string(n.Table) != "nat" {
		return false
	}
	return len(n.Chain) == 0 || string(n.Chain) == egress.PostRouting ||
		bytes.HasPrefix(n.Chain, []byte(netnames.EgressChainPrefixV4)) || bytes.HasPrefix(n.Chain, []byte(netnames.EgressChainPrefixV6))
}

// EgressView reads the node's state of pods' egress, in the egress's family, except for the
// nat table.
func (h *Host) EgressView(v6 bool) (out egress.Host, _ error) {
	err := with(func(c *rtnl.Conn) (err error) {
		if out.Links, err = c.Links(); err != nil {
			return err
		}
		out.Links = slices.DeleteFunc(out.Links, func(l netstate.Link) bool { return l.Kind != "veth" })
		if out.Addresses, err = c.Addresses(familyBy(v6)); err != nil {
			return err
		}
		out.Routes, err = c.Routes(familyBy(v6), netnames.MainTable)
		return err
	})
	if err != nil {
		return out, fmt.Errorf("read the node's links, addresses and routes of egress: %w", err)
	}
	return out, nil
}

// egressPrograms returns the programs of the backend in use.
func (h *Host) egressPrograms(v6 bool) (save, restore string, _ error) {
	in := h.inUse()
	if !v6 {
		return in.programs.save, in.programs.restore, nil
	}
	if p := in.six.programs; !p.there() {
		return "", "", p.errMissing()
	}
	return in.six.programs.save, in.six.programs.restore, nil
}

// EgressNAT reads the nat table in the egress's family.
func (h *Host) EgressNAT(ctx context.Context, v6 bool) (iptables.Table, error) {
	save, _, err := h.egressPrograms(v6)
	if err != nil {
		return iptables.Table{}, err
	}
	p, err := h.start(ctx, "", save, "-t", "nat")
	if err != nil {
		return iptables.Table{}, err
	}
	saved, err := p.wait()
	return egress.NAT(saved), err
}

// egressWait is how many seconds a repair waits for the iptables lock.
const egressWait = "5"

// restoreEgress writes a transaction unless it is empty.
func (h *Host) restoreEgress(ctx context.Context, v6 bool, text string) error {
	if text == "" {
		return nil
	}
	_, restore, err := h.egressPrograms(v6)
	if err != nil {
		return err
	}
	return h.run(ctx, transaction{program: restore, args: []string{"--noflush", "-w", egressWait}, script: text, fail: func(err error) error {
		return fmt.Errorf("restore rules of pods' egress: %w", err)
	}})
}

// RepairEgress restores what pods' egress has lost; nat is the current nat table. It returns
// what was restored, including what others restored meanwhile. Calls queue with those of
// [Host.SetupNode].
func (h *Host) RepairEgress(ctx context.Context, v6 bool, nat iptables.Table, list []egress.Loss) (done []egress.Loss, _ error) {
	h.node.Lock()
	defer h.node.Unlock()
	var chains []egress.SNAT
	var b rtnl.Batch
	var rest []egress.Loss
	for _, l := range list {
		if l.Kind == egress.LostChain {
			chains = append(chains, l.SNAT)
			continue
		}
		b.Change(l.Change)
		rest = append(rest, l)
	}
	var errs []error
	if err := with(func(c *rtnl.Conn) error { return c.Do(&b) }); err != nil {
		errs = append(errs, fmt.Errorf("restore links, addresses and routes of pods' egress: %w", err))
	}
	for i, l := range rest {
		if b.Took(i) {
			done = append(done, l)
		}
	}
	if err := h.restoreEgress(ctx, v6, egress.Repair(nat, chains...)); err != nil {
		return done, errors.Join(append(errs, err)...)
	}
	for _, l := range list {
		if l.Kind == egress.LostChain {
			done = append(done, l)
		}
	}
	return done, errors.Join(errs...)
}

// TakeBackEgress removes chains and routes that RepairEgress made for pods that have ended.
func (h *Host) TakeBackEgress(ctx context.Context, v6 bool, list []egress.Loss) error {
	h.node.Lock()
	defer h.node.Unlock()
	var chains []string
	var b rtnl.Batch
	for _, l := range list {
		if l.Kind == egress.LostChain {
			chains = append(chains, l.SNAT.Chain)
		} else if undo, ok := l.Change.Undo(); ok && l.Kind == egress.LostRoute {
			b.Change(undo) // a veth's addresses vanish with it
		}
	}
	err := with(func(c *rtnl.Conn) error { return c.Do(&b) })
	if len(chains) == 0 {
		return err
	}
	nat, saveErr := h.EgressNAT(ctx, v6)
	if saveErr != nil {
		return errors.Join(err, saveErr)
	}
	return errors.Join(err, h.restoreEgress(ctx, v6, egress.Remove(nat, chains...)))
}
