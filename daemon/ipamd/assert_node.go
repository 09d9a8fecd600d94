package ipamd

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/internal/hostnet"
)

// nodeRules are the rules of the node. Those who change their input and those who restore
// them take turns, and all use the newest input.
type nodeRules struct {
	host   *hostnet.Host
	writes *filterWrites

	mu sync.Mutex // guards in, and is held by a pass
	in rules.NodeInput
}

// input returns the current input of the rules.
func (n *nodeRules) input() rules.NodeInput {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.in
}

// setCIDRs updates the rules to other CIDRs of the VPC. The new CIDRs are kept even if the
// update fails.
func (n *nodeRules) setCIDRs(ctx context.Context, cidrs []netip.Prefix) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.in.VPCCIDRs = slices.Clone(cidrs)
	return n.host.SetupNode(ctx, n.in)
}

// assert restores the rules and returns which packet filter rules were missing.
func (n *nodeRules) assert(ctx context.Context) ([]hostnet.Loss, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.writes.begin()
	err := n.host.SetupNode(ctx, n.in)
	return n.writes.end(), err
}

// follow moves the rules if the node's programs use the other backend of iptables by now.
func (n *nodeRules) follow(ctx context.Context, now time.Time, full bool) (*hostnet.Move, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.host.FollowBackend(ctx, now, n.in, full)
}

// filterWrites records the scripts that a pass writes to packet filters.
type filterWrites struct {
	mu      sync.Mutex // guards the fields below
	noting  bool
	scripts []string
}

// observe is called for every program run.
func (w *filterWrites) observe(r hostnet.Run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.noting && r.Input != "" && r.Err == nil && !r.Cleans {
		w.scripts = append(w.scripts, r.Input)
	}
}

func (w *filterWrites) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noting, w.scripts = true, nil
}

func (w *filterWrites) end() (out []hostnet.Loss) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noting = false
	for _, s := range w.scripts {
		out = append(out, hostnet.Loss{Object: hostnet.ObjectPacketFilter, Text: filterText(s)})
	}
	return out
}

// filterText names the chains and tables that a script restored.
func filterText(script string) string {
	var chains []string
	note := func(name string) {
		if name != "" && !slices.Contains(chains, name) {
			chains = append(chains, name)
		}
	}
	table := ""
	for line := range strings.Lines(script) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case strings.HasPrefix(words[0], "*"):
			table = words[0][1:]
		case strings.HasPrefix(words[0], ":"):
			note(table + "/" + words[0][1:])
		case len(words) > 1 && slices.Contains([]string{"-A", "-I", "-D", "-X"}, words[0]):
			note(table + "/" + words[1])
		case len(words) > 2 && slices.Contains([]string{"table", "add", "flush", "delete"}, words[0]):
			note("nft " + strings.Trim(strings.Join(words[:min(len(words), 5)], " "), " {"))
		}
	}
	const most = 6
	if more := len(chains) - most; more > 0 {
		chains = append(chains[:most], fmt.Sprintf("%d more", more))
	}
	return "packet filter rules differed: " + strings.Join(chains, ", ")
}
