package hostnet

import (
	"context"
	"errors"
	"fmt"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/netstate"
	"cnictl/daemon/rtnl"
)

// SetupNode brings the node's own state to what in asks for: the primary ENI's MTU, policy
// rules, SNAT, marks and the guard of egress addresses, in both families and both iptables
// backends. It determines in's PrimaryLink, Backend and RandomFully itself. Calls queue.
func (h *Host) SetupNode(ctx context.Context, in rules.NodeInput) error {
	h.node.Lock()
	defer h.node.Unlock()
	return h.setupNode(ctx, in)
}

func (h *Host) setupNode(ctx context.Context, in rules.NodeInput) error {
	ctx, stop := context.WithCancel(ctx) // ends the programs if the rest fails first
	defer stop()

	read, err := h.startFilterRead(ctx)
	if err != nil {
		return err
	}
	backends, err := h.startBackends(ctx, rules.WantedRuleset6(in))
	var want rules.NodeState
	if err == nil {
		want, err = h.setupLinkAndRules(ctx, in)
	}
	if err != nil {
		stop()
		_, _ = h.finishFilterRead(read, rules.NodeState{})
		reap(backends)
		return err
	}
	if err := h.setFilters(ctx, read, want); err != nil {
		stop()
		reap(backends)
		if in.IPv6 {
			return fmt.Errorf("%s: %w", textEnableIPv6, err)
		}
		return err
	}
	return h.setBackends(ctx, backends)
}

// setupLinkAndRules does the rtnetlink part and returns the wanted state, which
// needs the link's name.
func (h *Host) setupLinkAndRules(ctx context.Context, in rules.NodeInput) (want rules.NodeState, _ error) {
	link, err := h.primaryLink(ctx, in.PrimaryMAC)
	if err != nil {
		return want, err
	}
	if want, err = h.wanted(in, link); err != nil {
		return want, err
	}
	if !h.randomFully && in.RandomizeSNAT != rules.SNATHashRandom && in.RandomizeSNAT != rules.SNATNone {
		h.warnOnce("iptables is older than 1.6.2 and has no --random-fully, SNAT uses --random")
	}
	return want, with(func(c *rtnl.Conn) error {
		if err := h.setPrimaryMTU(c, link, want.MTU); err != nil {
			return err
		}
		if err := h.setNodeRules(c, want.IPRules); err != nil {
			return err
		}
		h.setSysctls(c, link, want.Sysctls)
		return nil
	})
}

// wanted returns the wanted state of a node whose primary link is known.
func (h *Host) wanted(in rules.NodeInput, link netstate.Link) (rules.NodeState, error) {
	in.PrimaryLink, in.Backend, in.RandomFully = link.Name, h.inUse().backend, h.randomFully
	if err := in.Validate(); err != nil {
		return rules.NodeState{}, fmt.Errorf("host network setup: %w", err)
	}
	return rules.Node(in), nil
}

// setNodeRules sets the rules of both families: one gets the wanted rules, the other may
// have leftovers from a cluster of the other family.
func (h *Host) setNodeRules(c *rtnl.Conn, want []netstate.Rule) error {
	for _, ipv6 := range []bool{false, true} {
		if err := h.setFamilyRules(c, want, ipv6); err != nil {
			return err
		}
	}
	return nil
}

func (h *Host) primaryLink(ctx context.Context, mac string) (netstate.Link, error) {
	if mac == "" {
		return netstate.Link{}, errors.New(textNoInterface)
	}
	ctx, stop := context.WithTimeout(ctx, h.opts.PrimaryWait)
	defer stop()
	link, err := waitLink(ctx, mac)
	if err != nil {
		return netstate.Link{}, fmt.Errorf(textNoPrimary+": %w", mac, mac, err)
	}
	return link, nil
}

func (h *Host) setPrimaryMTU(c *rtnl.Conn, link netstate.Link, mtu int) error {
	if mtu == 0 || link.MTU == mtu {
		return nil
	}
	var b rtnl.Batch
	b.LinkMTU(link.Index, mtu)
	if err := c.Do(&b); err != nil {
		return fmt.Errorf(textPrimaryMTU+": %w", mtu, err)
	}
	h.opts.Log.Info("MTU of the primary ENI changed", "link", link.Name, "from", link.MTU, "to", mtu)
	return nil
}

// setFamilyRules adds before it deletes. A failure to set the mark's rule or those of strict
// mode is an error; for rules of external services it only warns, as in upstream.
func (h *Host) setFamilyRules(c *rtnl.Conn, want []netstate.Rule, ipv6 bool) error {
	current, err := ipRules(c, familyBy(ipv6))
	if err != nil {
		return fmt.Errorf("%s: %w", textDeleteRule, err)
	}
	var own, services []netstate.Change
	for _, change := range rules.DiffNodeRules(current, want, ipv6) {
		if change.Rule.Priority == netnames.RuleExternal {
			services = append(services, change)
		} else {
			own = append(own, change)
		}
	}
	if err := do(c, own); err != nil {
		return fmt.Errorf("%s: %w", ruleText(err, own), err)
	}
	h.logRules(own)
	if err := do(c, services); err != nil {
		h.opts.Log.Warn("policy rules of external services cannot be set", "error", err)
		return nil
	}
	h.logRules(services)
	return nil
}

// ruleText returns upstream's message for the rule change that failed.
func ruleText(err error, changes []netstate.Change) string {
	var failed *rtnl.Error
	if !errors.As(err, &failed) {
		return textAddRule
	}
	adding := changes[failed.Index].Do == netstate.AddRule
	switch r := changes[failed.Index].Rule; {
	case r.Table == netnames.LocalTable && r.Protocol != 0:
		return textGatewayRule
	case r.Table == netnames.LocalTable && adding:
		return textLocalRule
	case r.Table == netnames.LocalTable:
		return textDeleteLocalRule
	case adding:
		return textAddRule
	}
	return textDeleteRule
}

func (h *Host) logRules(changes []netstate.Change) {
	for _, c := range changes {
		msg := "policy rule added"
		if c.Do == netstate.DelRule {
			msg = "policy rule removed"
		}
		h.opts.Log.Info(msg, "rule", c.Rule.String()) //nolint:sloglint // one of two constants
	}
}
