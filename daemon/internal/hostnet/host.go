package hostnet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/rtnl"
)

// Options configures a Host. Only Log is required.
type Options struct {
	Log *slog.Logger
	// IPTables is the program for IPv4. If its "-nft" and "-legacy" variants exist too, the
	// mode of the node's own programs decides, else this program's mode. Default
	// "iptables", found in PATH or the system directories.
	IPTables string
	NFT      string // default "nft"
	ProcSys  string // default "/proc/sys"
	// PrimaryWait, besides the context, bounds SetupNode's wait for the primary ENI's
	// link. Default 12 s: upstream looks five times, 3 s apart.
	PrimaryWait time.Duration
	// RouteBackoff is the pause before the first retry of a refused ENI route.
	// Default 0.5 s.
	RouteBackoff time.Duration
	// Observe is called after every program run, in the goroutine that waited for it.
	Observe func(Run)
}

// Host manages the node's network.
type Host struct {
	opts        Options
	nft         string        // path; "" if there is none
	plain       rules.Backend // the mode of iptables itself
	randomFully bool
	choice      atomic.Pointer[choice] // replaced while node is held

	node     sync.Mutex            // held during a pass over the node's own state
	follower rules.BackendFollower // guarded by node
	looked   string                // the legacy tables in use at the last look at the backends; guarded by node
	// warned holds the warnings already logged, so that passes do not repeat them;
	// guarded by node.
	warned map[string]bool

	readOnly readOnly
}

// New finds the programs and the backend for rules, in the calling thread's namespace.
// Programs that it runs are stopped when ctx ends.
func New(ctx context.Context, opts Options) (*Host, error) {
	if opts.Log == nil {
		return nil, errors.New("hostnet: no logger")
	}
	opts.IPTables = orDefault(opts.IPTables, "iptables")
	opts.NFT = orDefault(opts.NFT, "nft")
	opts.ProcSys = orDefault(opts.ProcSys, "/proc/sys")
	opts.PrimaryWait = orDefault(opts.PrimaryWait, 12*time.Second)
	opts.RouteBackoff = orDefault(opts.RouteBackoff, 500*time.Millisecond)
	h := &Host{opts: opts, warned: map[string]bool{}}
	version, err := h.findPrograms(ctx)
	if err != nil {
		return nil, err
	}
	in := h.inUse()
	if in.backend == rules.NFTables && h.nft == "" {
		return nil, fmt.Errorf("find %s, which the nftables backend needs: not in PATH", opts.NFT)
	}
	opts.Log.Info("connmark backend", "backend", string(in.backend), "reason", in.reason, "program", in.programs.name, "version", version, "random_fully", h.randomFully)
	return h, nil
}

// inUse returns the backend in use.
func (h *Host) inUse() *choice { return h.choice.Load() }

// Backend returns the backend of the rules that mark connections: "nftables" or
// "iptables".
func (h *Host) Backend() string { return string(h.inUse().backend) }

// warnOnce logs a warning unless it was logged before. The caller holds h.node.
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
