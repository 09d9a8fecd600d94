package hostnet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/iptables"
)

// backend is a rule set besides a pass's main one: that of ip6tables, or those of the
// iptables backend that the node does not use, where an earlier installation may have left
// rules. A backend that needs no rules is read until it has none of ours; on most nodes,
// that is once.
type backend struct {
	programs pair
	// tables is the file that lists a legacy backend's tables in use, so that most
	// nodes run no program; "" for nf_tables.
	tables string
	clean  bool // has nothing of ours; guarded by Host.node
}

// pair is the pair of programs of a rule set.
type pair struct {
	name          string // "ip6tables-legacy"
	save, restore string // paths; "" if missing
}

func (p pair) there() bool { return p.save != "" && p.restore != "" }

// errMissing is why IPv6 egress cannot work without the programs.
func (p pair) errMissing() error {
	return fmt.Errorf("find %s-save and %s-restore, which ENABLE_V6_EGRESS needs: not in PATH", p.name, p.name)
}

// findPair looks for programs that may be missing.
func findPair(name string) pair {
	p := pair{name: name}
	var err error
	if p.save, err = lookPath(name + "-save"); err != nil {
		p.save = ""
	}
	if p.restore, err = lookPath(name + "-restore"); err != nil {
		p.restore = ""
	}
	return p
}

// newBackend returns the backend of the programs <name>-save and <name>-restore. legacy says
// whether they use the legacy backend.
func newBackend(name string, legacy bool) *backend {
	s := &backend{programs: findPair(name)}
	if legacy {
		s.tables = legacyTables(name)
	}
	return s
}

// legacyTables returns the file that lists a legacy backend's tables in use, in the
// reading thread's namespace.
func legacyTables(name string) string {
	if strings.HasPrefix(filepath.Base(name), "ip6") {
		return "/proc/thread-self/net/ip6_tables_names"
	}
	return "/proc/thread-self/net/ip_tables_names"
}

// inUse reports whether a legacy backend has any table in the thread's namespace, or may
// have one because the file cannot be read.
func inUse(tables string) bool {
	text, err := os.ReadFile(tables)
	return len(text) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist)
}

// ip6tables returns the name of the IPv6 counterpart of an IPv4 program.
func ip6tables(iptables string) string {
	dir, name := filepath.Split(iptables)
	return dir + strings.Replace(name, "iptables", "ip6tables", 1)
}

// choice is a backend to use, and the programs that follow from it.
type choice struct {
	backend  rules.Backend
	reason   string
	programs pair // for IPv4
	// nftGone is set once the other backend's native table is known to be gone; guarded
	// by Host.node.
	nftGone bool
	six     *backend   // ip6tables of this backend
	others  []*backend // the other backend, both families
}

// choose makes the choice of a backend. It derives the names of the ip6tables programs from
// the one for IPv4, and names those of the other backend as iptables releases do.
func (h *Host) choose(b rules.Backend, reason string) *choice {
	name := h.opts.IPTables
	if b != h.plain {
		name += modeName(b) // of the same release
	}
	legacy := b == rules.IPTables
	in := &choice{backend: b, reason: reason, programs: findPair(name), six: newBackend(ip6tables(name), legacy)}
	dir := filepath.Dir(name)
	if dir == "." {
		dir = ""
	}
	other := legacyMode
	if legacy {
		other = nftMode
	}
	for _, name := range []string{"iptables", "ip6tables"} {
		in.others = append(in.others, newBackend(filepath.Join(dir, name+other), !legacy))
	}
	return in
}

// backendRead is a backend being read.
type backendRead struct {
	backend *backend
	want    iptables.Ruleset
	save    *process
	// leaves keeps a guard while pods need it. The other backend's is removed, as the
	// backend in use then has one.
	leaves bool
}

// startBackends starts reading the backends that may need a change.
func (h *Host) startBackends(ctx context.Context, want6 iptables.Ruleset) (list []backendRead, _ error) {
	in := h.inUse()
	for s, want := range in.backends(want6) {
		wanted := rules.Wants(want)
		switch {
		case wanted && !s.programs.there():
			return list, fmt.Errorf("%s: %w", textBlockIPv6, s.programs.errMissing())
		case wanted:
			s.clean = false
		case s.clean, !s.programs.there(), s.tables != "" && !inUse(s.tables):
			continue
		}
		p, err := h.start(ctx, "", s.programs.save)
		if err != nil {
			if wanted {
				return list, fmt.Errorf("%s: %w", textBlockIPv6, err)
			}
			h.warnOnce("cannot read rules that an earlier run may have left", "program", s.programs.save, "error", err)
			continue
		}
		list = append(list, backendRead{s, want, p, s == in.six})
	}
	return list, nil
}

// backends yields each backend with its wanted rules.
func (in *choice) backends(want6 iptables.Ruleset) func(yield func(*backend, iptables.Ruleset) bool) {
	return func(yield func(*backend, iptables.Ruleset) bool) {
		if !yield(in.six, want6) {
			return
		}
		for _, s := range in.others {
			if !yield(s, rules.NoRuleset()) {
				return
			}
		}
	}
}

// reap waits for programs whose output is not needed.
func reap(list []backendRead) {
	for _, r := range list {
		_, _ = r.save.wait()
	}
}

// finish returns the input that brings a backend to the wanted state.
func (r backendRead) finish() (script string, _ error) {
	text, err := r.save.wait()
	if err != nil {
		return "", err
	}
	now, err := iptables.ParseSave(text)
	if err != nil {
		return "", err
	}
	want := r.want
	if r.leaves {
		if want, err = leaveGuard(now, want, true); err != nil {
			return "", err
		}
	}
	for _, t := range want.Tables {
		if rules.TableWants(t) && slices.Contains(now.Foreign, t.Name) {
			return "", fmt.Errorf("table %s holds rules written by nft, which %s can neither list nor keep", t.Name, r.backend.programs.name)
		}
	}
	script = rules.DiffRuleset(now, want)
	r.backend.clean = script == "" && !rules.Wants(want) && !rules.Guarded(now)
	return script, nil
}

// backendWait is how many seconds the removal of leftovers waits for the iptables lock. It
// delays the daemon's start, so it is short; the next pass tries again.
const backendWait = "1"

// setBackends finishes the reads and writes what differs. If leftovers cannot be removed,
// it only warns.
func (h *Host) setBackends(ctx context.Context, list []backendRead) error {
	var errs []error
	for _, r := range list {
		err := h.setBackend(ctx, r)
		switch {
		case err == nil:
		case rules.Wants(r.want):
			errs = append(errs, fmt.Errorf("%s: %w", textBlockIPv6, err))
		default:
			h.warnOnce("cannot remove rules that an earlier run left", "program", r.backend.programs.name, "error", err)
		}
	}
	return errors.Join(errs...)
}

func (h *Host) setBackend(ctx context.Context, r backendRead) error {
	for pass := 1; ; pass++ {
		script, err := r.finish()
		var refused *ProgramError
		if errors.As(err, &refused) && !rules.Wants(r.want) && r.backend.tables == "" {
			// A kernel without nf_tables has no rules in it either.
			h.opts.Log.Debug("rule set cannot be listed, assuming that it is empty", "program", r.backend.programs.name, "error", err)
			r.backend.clean = true
			return nil
		}
		if err != nil || script == "" {
			return err
		}
		write := transaction{program: r.backend.programs.restore, args: []string{"--noflush", "-w"}, script: script, fail: func(err error) error {
			return fmt.Errorf("%s: %w", restoreText(script, err), err)
		}}
		if write.cleans = !rules.Wants(r.want); write.cleans {
			write.args = append(write.args, backendWait)
		}
		err = h.run(ctx, write)
		if err == nil {
			r.backend.clean = !rules.Wants(r.want)
			return nil
		}
		if pass == passes || ctx.Err() != nil || !rules.Wants(r.want) {
			return errors.Join(err, ctx.Err())
		}
		if r.save, err = h.start(ctx, "", r.backend.programs.save); err != nil {
			return err
		}
	}
}
