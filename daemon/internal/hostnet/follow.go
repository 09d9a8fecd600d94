package hostnet

import (
	"context"
	"fmt"
	"os"
	"time"

	"cnictl/daemon/hostnet/rules"
)

// Move is a change of the backend in use.
type Move struct{ From, To, Reason string }

func (m Move) String() string {
	return fmt.Sprintf("the CNI's packet filter rules moved from %s to %s, which the node's programs use: %s", m.From, m.To, m.Reason)
}

// moveLimit bounds a look at the backends, and a move: another program can hold the lock of
// iptables for any time, and until then the rules in the backend of before do their work.
const moveLimit = 10 * time.Second

// FollowBackend looks again which backend the node's programs use. If that is not the one in
// use, it moves the rules there, by the code of a start: those in the new backend are written
// before those in the other one are removed, so that at any time at least one set is complete.
// It decides as at the start, except that without evidence the backend stays.
//
// It runs no program on a node without legacy tables. On others, full asks for a look even if
// no table came or went since the last one that could read all rules. If a move fails, the
// backend of before stays in use.
func (h *Host) FollowBackend(ctx context.Context, now time.Time, in rules.NodeInput, full bool) (*Move, error) {
	h.node.Lock()
	defer h.node.Unlock()
	used := h.inUse()
	tables := h.legacyTables()
	if full = full || h.follower.Undecided(used.backend) || tables != h.looked; !full {
		return nil, nil
	}
	found, reason, hinted, read := h.look(ctx, used.backend)
	if !read {
		return nil, nil
	}
	h.looked = tables
	if !h.follower.Follow(now, used.backend, found, hinted) {
		return nil, nil
	}
	next := h.choose(found, reason)
	move := &Move{string(used.backend), string(next.backend), reason}
	if err := h.move(ctx, next, in); err != nil {
		h.choice.Store(h.choose(used.backend, used.reason)) // which knows of nothing that is clean
		h.looked = ""                                       // look again, and try again
		return nil, fmt.Errorf("move packet filter rules from %s to %s (%s), will be retried: %w", move.From, move.To, reason, err)
	}
	h.follower.Moved(now)
	return move, nil
}

// look finds the backend that the node's programs use. read is false if there is no choice, or
// if a program failed or did not end in time.
func (h *Host) look(ctx context.Context, used rules.Backend) (found rules.Backend, reason string, hinted, read bool) {
	ctx, cancel := context.WithTimeout(ctx, moveLimit)
	defer cancel()
	probe := h.startBackendProbe(ctx)
	if probe == nil {
		return used, "", false, false
	}
	found, reason = probe.finish(ctx, used)
	return found, reason, probe.hinted, probe.failed == nil
}

// move brings the node to the wanted state with another backend. The caller holds h.node.
func (h *Host) move(ctx context.Context, next *choice, in rules.NodeInput) error {
	effective, err := effectiveCapabilities()
	if err == nil {
		err = missing(capabilities(next.backend), effective)
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, moveLimit)
	defer cancel()
	h.choice.Store(next)
	return h.setupNode(ctx, in)
}

// legacyTables returns the names of the legacy backend's tables in use, in both families.
func (h *Host) legacyTables() (names string) {
	for _, file := range []string{legacyTables(h.opts.IPTables), legacyTables(ip6tables(h.opts.IPTables))} {
		text, _ := os.ReadFile(file) // what cannot be read does not change either
		names += string(text) + ";"
	}
	return names
}
