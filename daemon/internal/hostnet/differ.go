package hostnet

import (
	"context"
	"fmt"

	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/rtnl"
)

// Parts of a node's own state, as returned by [Host.NodeDiffers].
const (
	PartLink    = "primary link"
	PartRules   = "policy rules"
	PartFilters = "packet filters"
)

// NodeDiffers returns the parts of the node's own state, as named above, that differ from
// what in asks for. It writes nothing. It costs as much as a [Host.SetupNode] that finds
// nothing to change: two concurrent program runs.
func (h *Host) NodeDiffers(ctx context.Context, in rules.NodeInput) (parts []string, _ error) {
	h.node.Lock()
	defer h.node.Unlock()
	ctx, stop := context.WithCancel(ctx)
	defer stop()

	read, err := h.startFilterRead(ctx)
	if err != nil {
		return nil, err
	}
	backends, err := h.startBackends(ctx, rules.WantedRuleset6(in))
	var want rules.NodeState
	if err == nil {
		parts, want, err = h.linkAndRulesDiffer(ctx, in)
	}
	if err != nil {
		stop()
		_, _ = h.finishFilterRead(read, rules.NodeState{})
		reap(backends)
		return nil, err
	}
	differ, err := h.filtersDiffer(read, backends, want)
	if differ {
		parts = append(parts, PartFilters)
	}
	return parts, err
}

func (h *Host) linkAndRulesDiffer(ctx context.Context, in rules.NodeInput) (parts []string, want rules.NodeState, _ error) {
	link, err := h.primaryLink(ctx, in.PrimaryMAC)
	if err != nil {
		return nil, want, err
	}
	if want, err = h.wanted(in, link); err != nil {
		return nil, want, err
	}
	if want.MTU != 0 && link.MTU != want.MTU {
		parts = append(parts, PartLink)
	}
	differ := false
	err = with(func(c *rtnl.Conn) error {
		for _, ipv6 := range []bool{false, true} {
			current, err := ipRules(c, familyBy(ipv6))
			if err != nil {
				return fmt.Errorf("list policy rules: %w", err)
			}
			differ = differ || len(rules.DiffNodeRules(current, want.IPRules, ipv6)) > 0
		}
		return nil
	})
	if differ {
		parts = append(parts, PartRules)
	}
	return parts, want, err
}

// filtersDiffer finishes all reads and reports whether a packet filter differs.
func (h *Host) filtersDiffer(read filterRead, backends []backendRead, want rules.NodeState) (differ bool, _ error) {
	view, err := h.finishFilterRead(read, want)
	if err == nil {
		want.Ruleset, err = leaveGuard(view.ruleset, want.Ruleset, false)
	}
	if err != nil {
		reap(backends)
		return false, err
	}
	list, _ := h.transactions(view, want)
	differ = len(list) > 0
	for _, r := range backends {
		script, err := r.finish()
		if err != nil && rules.Wants(r.want) {
			return differ, fmt.Errorf("%s: %w", textBlockIPv6, err)
		}
		differ = differ || err == nil && script != ""
	}
	return differ, nil
}
