package hostnet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/iptables"
)

// side is a rule set beside the one that a pass is about: that of ip6tables, or those of
// the iptables back end that the node does not use, where an earlier life of the node
// may have left rules. One of which nothing is wanted is read until it has nothing of
// ours, once for most nodes.
type side struct {
	programs pair
	// tables is the file that lists the tables of a legacy back end which are in use,
	// so that most nodes run no program; "" for nf_tables.
	tables string
	clean  bool // nothing of ours is there; guarded by Host.node
}

// pair are the programs of a rule set.
type pair struct {
	name          string // "ip6tables-legacy"
	save, restore string // paths; "" if there is none
}

func (p pair) there() bool { return p.save != "" && p.restore != "" }

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

// newSide is one with programs of a name. They print what the legacy back end has if
// legacy is true.
func newSide(name string, legacy bool) *side {
	s := &side{programs: findPair(name)}
	if legacy {
		s.tables = legacyTables(name)
	}
	return s
}

// legacyTables is the file that lists the tables in use of a legacy back end, in the
// namespace of the thread that reads it.
func legacyTables(name string) string {
	if strings.HasPrefix(filepath.Base(name), "ip6") {
		return "/proc/thread-self/net/ip6_tables_names"
	}
	return "/proc/thread-self/net/ip_tables_names"
}

// inUse reports whether a legacy back end has any table in the thread's namespace. Where
// the kernel doesn't tell, it may.
func inUse(tables string) bool {
	text, err := os.ReadFile(tables)
	return len(text) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist)
}

// ip6tables is the name of the IPv6 program beside one of IPv4.
func ip6tables(iptables string) string {
	dir, name := filepath.Split(iptables)
	return dir + strings.Replace(name, "iptables", "ip6tables", 1)
}

// findSides names the programs of the sides after the one that is in use, and those of
// the other back end as the iptables releases do.
func (h *Host) findSides() {
	legacy := h.backend == rules.IPTables
	h.six = newSide(ip6tables(h.iptables), legacy)
	dir := filepath.Dir(h.iptables)
	if dir == "." {
		dir = ""
	}
	other := legacyMode
	if legacy {
		other = nftMode
	}
	for _, name := range []string{"iptables", "ip6tables"} {
		h.others = append(h.others, newSide(filepath.Join(dir, name+other), !legacy))
	}
}

// sideRead is a side being read.
type sideRead struct {
	side *side
	want iptables.Ruleset
	save *process
	// leaves: a guard stays while pods need it. The other back end's doesn't: the one in
	// use has it then.
	leaves bool
}

// startSides starts to read the sides that may need a change.
func (h *Host) startSides(ctx context.Context, want6 iptables.Ruleset) (list []sideRead, _ error) {
	for s, want := range h.sides(want6) {
		wanted := rules.Wants(want)
		switch {
		case wanted && !s.programs.there():
			return list, fmt.Errorf("%s: find %s-save and %s-restore, which ENABLE_V6_EGRESS needs: not in PATH", textBlockIPv6, s.programs.name, s.programs.name)
		case wanted:
			s.clean = false
		case s.clean, !s.programs.there(), s.tables != "" && !inUse(s.tables):
			continue
		}
		p, err := h.start(exec.CommandContext(ctx, s.programs.save), "")
		if err != nil {
			if wanted {
				return list, fmt.Errorf("%s: %w", textBlockIPv6, err)
			}
			h.warnOnce("rules that an earlier life of the node may have left cannot be read", "program", s.programs.save, "error", err)
			continue
		}
		list = append(list, sideRead{s, want, p, s == h.six})
	}
	return list, nil
}

// sides goes through the sides with what is wanted there.
func (h *Host) sides(want6 iptables.Ruleset) func(yield func(*side, iptables.Ruleset) bool) {
	return func(yield func(*side, iptables.Ruleset) bool) {
		if !yield(h.six, want6) {
			return
		}
		for _, s := range h.others {
			if !yield(s, rules.NoRuleset()) {
				return
			}
		}
	}
}

// reap waits for programs whose output nobody will read.
func reap(list []sideRead) {
	for _, r := range list {
		_, _ = r.save.wait()
	}
}

// finish is the input that brings a side to what is wanted.
func (r sideRead) finish() (script string, _ error) {
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
			return "", fmt.Errorf("table %s holds rules written by nft, which %s can neither list nor keep", t.Name, r.side.programs.name)
		}
	}
	script = rules.DiffRuleset(now, want)
	r.side.clean = script == "" && !rules.Wants(want) && !rules.Guarded(now)
	return script, nil
}

// sideWait is how many seconds the removal of leftovers waits for the lock of iptables:
// the daemon's start waits too. The next pass tries again.
const sideWait = "1"

// setSides finishes reads of sides and writes what differs. Failing to remove what
// nobody wants only warns.
func (h *Host) setSides(ctx context.Context, list []sideRead) error {
	var errs []error
	for _, r := range list {
		err := h.setSide(ctx, r)
		switch {
		case err == nil:
		case rules.Wants(r.want):
			errs = append(errs, fmt.Errorf("%s: %w", textBlockIPv6, err))
		default:
			h.warnOnce("rules that an earlier life of the node left cannot be removed", "program", r.side.programs.name, "error", err)
		}
	}
	return errors.Join(errs...)
}

func (h *Host) setSide(ctx context.Context, r sideRead) error {
	for pass := 1; ; pass++ {
		script, err := r.finish()
		var refused *ProgramError
		if errors.As(err, &refused) && !rules.Wants(r.want) && r.side.tables == "" {
			// A kernel without nf_tables has no rules in it either.
			h.opts.Log.Debug("rule set cannot be listed, taken as empty", "program", r.side.programs.name, "error", err)
			r.side.clean = true
			return nil
		}
		if err != nil || script == "" {
			return err
		}
		wait := []string{"-w"}
		if !rules.Wants(r.want) {
			wait = append(wait, sideWait)
		}
		err = h.run(ctx, transaction{r.side.programs.restore, append([]string{"--noflush"}, wait...), script, func(err error) error {
			return fmt.Errorf("%s: %w", restoreText(script, err), err)
		}})
		if err == nil {
			r.side.clean = !rules.Wants(r.want)
			return nil
		}
		if pass == passes || ctx.Err() != nil || !rules.Wants(r.want) {
			return errors.Join(err, ctx.Err())
		}
		if r.save, err = h.start(exec.CommandContext(ctx, r.side.programs.save), ""); err != nil {
			return err
		}
	}
}
