package hostnet

import (
	"context"
	"errors"
	"slices"
	"strings"

	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/iptables"
	"cnictl/daemon/rtnl"
)

// backendProbe finds the backend that the node's own programs use, if iptables is installed
// for both: rules in the other one would not interact with theirs. At the start kubelet, which
// started this process, has made its chains; kube-proxy may come later, or change its mode, so
// [Host.FollowBackend] looks again.
//
// Most nodes have no table in the legacy backend, so there is nothing to read.
type backendProbe struct {
	h      *Host
	chains *process // nft list chains: both families, including kube-proxy's table; may be nil
	legacy *process // the legacy backend's IPv4 rules; nil if it has no table
	failed error    // the last failure to read
	hinted bool     // the choice does not depend on numbers of rules
}

// Suffixes of the iptables program's name in the two modes.
const (
	nftMode    = "-nft"
	legacyMode = "-legacy"
)

func modeName(b rules.Backend) string {
	if b == rules.IPTables {
		return legacyMode
	}
	return nftMode
}

// startBackendProbe returns nil if there is no choice, or no nft. Programs that run when ctx ends
// are stopped.
func (h *Host) startBackendProbe(ctx context.Context) *backendProbe {
	both := findPair(h.opts.IPTables+nftMode).there() && findPair(h.opts.IPTables+legacyMode).there()
	if !both || h.nft == "" {
		return nil
	}
	s := &backendProbe{h: h}
	if s.hasLegacy() {
		s.chains = s.startChains(ctx)
		s.legacy = s.startSave(ctx, h.opts.IPTables, true)
	}
	return s
}

// hasLegacy reports whether the legacy backend has any table.
func (s *backendProbe) hasLegacy() bool {
	return inUse(legacyTables(s.h.opts.IPTables)) || inUse(legacyTables(ip6tables(s.h.opts.IPTables)))
}

func (s *backendProbe) startChains(ctx context.Context) *process {
	return s.start(ctx, s.h.nft, "list", "chains")
}

// start returns nil if the program cannot be started.
func (s *backendProbe) start(ctx context.Context, program string, args ...string) *process {
	p, err := s.h.start(ctx, "", program, args...)
	if err != nil {
		s.unread(program, err)
		return nil
	}
	return p
}

// startSave starts reading one family of one backend. It returns nil if there is nothing
// to read.
func (s *backendProbe) startSave(ctx context.Context, iptables string, legacy bool) *process {
	if legacy && !inUse(legacyTables(iptables)) {
		return nil
	}
	mode := nftMode
	if legacy {
		mode = legacyMode
	}
	p := findPair(iptables + mode)
	if !p.there() {
		return nil
	}
	return s.start(ctx, p.save)
}

// finish waits for the programs and chooses the backend.
func (s *backendProbe) finish(ctx context.Context, plain rules.Backend) (b rules.Backend, reason string) {
	if s.chains == nil && s.legacy == nil {
		if plain == rules.NFTables {
			return s.withoutLegacy()
		}
		s.chains = s.startChains(ctx)
	}
	nft, known := s.nft()
	legacy := s.traces(s.legacy)
	if !known {
		return plain, "nft failed, using iptables' own mode"
	}
	if s.hinted = nft.Missing || nft.Hint != "" || legacy.Hint != ""; !s.hinted {
		nft, legacy = s.rest(ctx, nft, legacy, plain)
		s.hinted = legacy.Hint != ""
	}
	return rules.HostBackend(nft, legacy, plain)
}

// withoutLegacy chooses the backend when the legacy one is not in use.
func (s *backendProbe) withoutLegacy() (b rules.Backend, reason string) {
	there, err := rtnl.HasNFTables()
	if err != nil { // iptables will report it too, and better
		s.h.opts.Log.Debug("cannot find out whether the kernel has nf_tables", "error", err)
		there = true
	}
	if !there {
		return rules.HostBackend(rules.Traces{Missing: true}, rules.Traces{}, rules.NFTables)
	}
	return rules.NFTables, "the legacy backend has no table"
}

// nft returns the traces in nft's list of chains. known is false if nft did not run, or
// failed for a reason other than a kernel without nf_tables.
func (s *backendProbe) nft() (t rules.Traces, known bool) {
	if s.chains == nil {
		return t, false
	}
	listing, err := s.chains.wait()
	if err == nil {
		return rules.Traces{Hint: rules.NFTHint(listing)}, true
	}
	var failed *ProgramError
	if t.Missing = errors.As(err, &failed) && slices.ContainsFunc(textsNoNFT, func(text string) bool { return strings.Contains(failed.Message, text) }); !t.Missing {
		s.unread(s.h.nft, err)
	}
	return t, t.Missing
}

// textsNoNFT are nft's errors on a kernel without nf_tables.
var textsNoNFT = []string{"Protocol not supported", "Operation not supported", "Invalid argument"}

// rest reads the remaining rules if there was no hint so far. Most nodes without a hint
// have no legacy table either, so there is no choice.
func (s *backendProbe) rest(ctx context.Context, nft, legacy rules.Traces, plain rules.Backend) (_, _ rules.Traces) {
	v6 := ip6tables(s.h.opts.IPTables)
	last := s.startSave(ctx, v6, true)
	if last == nil && legacy.Rules == 0 && plain == rules.NFTables {
		return nft, legacy
	}
	list := []*process{s.startSave(ctx, s.h.opts.IPTables, false), s.startSave(ctx, v6, false)}
	legacy = legacy.Add(s.traces(last))
	for _, p := range list {
		nft = nft.Add(s.traces(p))
	}
	return nft, legacy
}

// traces reads the output of one program, which may be nil.
func (s *backendProbe) traces(p *process) rules.Traces {
	if p == nil {
		return rules.Traces{}
	}
	text, err := p.wait()
	var r iptables.Ruleset
	if err == nil {
		r, err = iptables.ParseSave(text)
	}
	if err != nil {
		s.unread(p.run.Program, err)
	}
	return rules.TracesOf(r)
}

func (s *backendProbe) unread(program string, err error) {
	s.failed = err
	s.h.warnOnce("cannot read the node's rules; detecting the iptables mode without them", "program", program, "error", err)
}

// drop waits for programs whose output is not needed.
func (s *backendProbe) drop() {
	if s == nil {
		return
	}
	for _, p := range slices.DeleteFunc([]*process{s.chains, s.legacy}, func(p *process) bool { return p == nil }) {
		_, _ = p.wait()
	}
}
