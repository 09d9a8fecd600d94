package hostnet

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/rtnl"
)

// Options configures a Host. Only Log is required.
type Options struct {
	Log *slog.Logger
	// IPTables is the program for IPv4. Where it is there with "-nft" and "-legacy" behind
	// its name too, the mode of the node's own programs decides, else that of the program.
	// Default "iptables", found in PATH or the system directories.
	IPTables string
	NFT      string // default "nft"
	ProcSys  string // default "/proc/sys"
	// PrimaryWait bounds how long SetupNode waits for the primary ENI's link, beside
	// its context. Default 12 s: upstream looks five times, 3 s apart.
	PrimaryWait time.Duration
	// RouteBackoff is the first pause before a refused ENI route is tried again.
	// Default 0.5 s.
	RouteBackoff time.Duration
	// Observe is called with every program run, from the goroutine that waited for it.
	Observe func(Run)
}

// Host is the network of the node.
type Host struct {
	opts        Options
	programs    programs
	iptables    string // name of the variant in use; "-save" and "-restore" follow it
	backend     rules.Backend
	reason      string // for backend
	randomFully bool

	node sync.Mutex // held by a pass over the node's own state
	// nftGone is set once the native table of the other back end is known to be
	// gone; guarded by node.
	nftGone bool
	six     *backend   // ip6tables of the back end in use
	others  []*backend // the other back end, both families
	// warned holds the warnings given already, so that passes don't repeat
	// themselves; guarded by node.
	warned map[string]bool

	readOnly readOnly
}

// New finds the programs and the back end for rules, in the namespace of the calling
// thread.
func New(opts Options) (*Host, error) {
	if opts.Log == nil {
		return nil, errors.New("hostnet: no logger")
	}
	opts.IPTables = orDefault(opts.IPTables, "iptables")
	opts.NFT = orDefault(opts.NFT, "nft")
	opts.ProcSys = orDefault(opts.ProcSys, "/proc/sys")
	opts.PrimaryWait = orDefault(opts.PrimaryWait, 12*time.Second)
	opts.RouteBackoff = orDefault(opts.RouteBackoff, 500*time.Millisecond)
	h := &Host{opts: opts, warned: map[string]bool{}}
	version, err := h.findPrograms()
	if err != nil {
		return nil, err
	}
	if h.backend == rules.NFTables && h.programs.nft == "" {
		return nil, fmt.Errorf("find %s, which the nftables back end needs: not in PATH", opts.NFT)
	}
	h.findBackends()
	opts.Log.Info("connmark back end", "backend", string(h.backend), "reason", h.reason, "program", h.iptables, "version", version, "random_fully", h.randomFully)
	return h, nil
}

// Backend is where rules that mark connections live: "nftables" or "iptables".
func (h *Host) Backend() string { return string(h.backend) }

// warnOnce logs a warning unless the same was given before. The caller holds node.
func (h *Host) warnOnce(msg string, args ...any) {
	if text := fmt.Sprintln(append([]any{msg}, args...)...); !h.warned[text] {
		h.warned[text] = true
		h.opts.Log.Warn(msg, args...) //nolint:sloglint // the callers pass constants
	}
}

func orDefault[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}

// with runs f with a netlink socket in the namespace of the calling thread.
func with(f func(*rtnl.Conn) error) error {
	c, err := rtnl.Open()
	if err != nil {
		return err
	}
	return errors.Join(f(c), c.Close())
}
