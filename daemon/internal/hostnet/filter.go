package hostnet

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/iptables"
)

// ErrConnmark is wrapped by errors about the native nftables table.
var ErrConnmark = errors.New("host network setup: set up nftables connmark")

// passes bounds the attempts of a pass over the filters. An attempt fails if a transaction
// is refused because another program changed what had just been read.
const passes = 3

// filterView is the output of both tools.
type filterView struct {
	ruleset    iptables.Ruleset
	nft        *rules.NFTTable
	nftUnknown bool // the table exists but cannot be parsed
}

// filterRead is a view being read.
type filterRead struct{ save, nft *process }

// startFilterRead starts both tools, or only iptables-save if there can be no native table.
func (h *Host) startFilterRead(ctx context.Context) (r filterRead, _ error) {
	var err error
	if r.save, err = h.start(ctx, "", h.inUse().programs.save); err != nil {
		return r, fmt.Errorf("%s: %w", textNoIPTables, err)
	}
	if h.nft == "" || h.inUse().nftGone {
		return r, nil
	}
	r.nft, err = h.start(ctx, "", h.nft, "list", "table", "ip", netnames.NFTTable)
	if err != nil && h.inUse().backend == rules.NFTables {
		_, _ = r.save.wait() // the failed start of nft is the error to report
		return r, fmt.Errorf("%w: %w", ErrConnmark, err)
	}
	return r, nil
}

// finishFilterRead waits for the tools, always for both.
func (h *Host) finishFilterRead(r filterRead, want rules.NodeState) (v filterView, _ error) {
	saved, saveErr := r.save.wait()
	nftErr := h.finishNFTRead(r.nft, &v)
	if saveErr != nil {
		return v, fmt.Errorf(textCheckRule+": %w", firstRule(want.Ruleset), saveErr)
	}
	if nftErr != nil {
		return v, fmt.Errorf("%w: %w", ErrConnmark, nftErr)
	}
	var err error
	if v.ruleset, err = iptables.ParseSave(saved); err != nil {
		return v, fmt.Errorf(textCheckRule+": %w", firstRule(want.Ruleset), err)
	}
	for _, t := range want.Ruleset.Tables {
		if rules.TableWants(t) && slices.Contains(v.ruleset.Foreign, t.Name) {
			return v, fmt.Errorf("%s: table %s holds rules written by nft, which iptables can neither list nor keep; see: nft list table ip %s",
				textNoIPTables, t.Name, t.Name)
		}
	}
	return v, nil
}

func (h *Host) finishNFTRead(p *process, v *filterView) error {
	if p == nil {
		return nil
	}
	out, err := p.wait()
	if err != nil {
		if noSuchTable(err) {
			return nil
		}
		if h.inUse().backend == rules.IPTables { // a kernel without nf_tables has no table either
			h.opts.Log.Warn("native table cannot be listed, assuming that it does not exist", "error", err)
			return nil
		}
		return err
	}
	if v.nft, err = rules.ParseNFT(out); err != nil {
		h.opts.Log.Warn("native table cannot be parsed, will be replaced", "error", err)
		v.nftUnknown = true
	}
	return nil
}

// noSuchTable reports whether nft failed because the table does not exist.
func noSuchTable(err error) bool {
	var failed *ProgramError
	return errors.As(err, &failed) && strings.Contains(failed.Message, "No such file or directory")
}

// firstRule returns the rule that upstream would have checked first.
func firstRule(want iptables.Ruleset) string {
	script := rules.DiffRuleset(iptables.Ruleset{}, want)
	for line := range strings.Count(script, "\n") {
		if _, rule, ok := rules.Describe(script, line+1); ok {
			return rule
		}
	}
	return "rules"
}

// transactions returns the transactions that turn a view into the wanted state, in order.
// They may run concurrently unless ordered: then marks move between the backends, and
// the wanted backend's are written first.
func (h *Host) transactions(v filterView, want rules.NodeState) (list []transaction, ordered bool) {
	nft := rules.DiffNFT(v.nft, want.NFT)
	switch {
	case v.nftUnknown && want.NFT != nil:
		nft = rules.ReplaceNFT(*want.NFT)
	case v.nftUnknown:
		nft = rules.DiffNFT(&rules.NFTTable{}, nil)
	}
	list = []transaction{h.nftTransaction(nft), h.restoreTransaction(rules.DiffRuleset(v.ruleset, want.Ruleset))}
	if h.inUse().backend == rules.IPTables {
		slices.Reverse(list)
	}
	nat, _ := v.ruleset.Table("nat")
	_, iptablesMarks := nat.Chain(netnames.ConnmarkChain)
	ordered = h.inUse().backend == rules.IPTables || iptablesMarks
	return slices.DeleteFunc(list, func(t transaction) bool { return t.script == "" }), ordered
}

// setFilters finishes a read and writes what differs. It starts over if a transaction is
// refused.
func (h *Host) setFilters(ctx context.Context, read filterRead, want rules.NodeState) error {
	for pass := 1; ; pass++ {
		view, err := h.finishFilterRead(read, want)
		if err != nil {
			return err
		}
		if want.Ruleset, err = leaveGuard(view.ruleset, want.Ruleset, false); err != nil {
			return err
		}
		list, ordered := h.transactions(view, want)
		err = h.write(ctx, list, ordered)
		if err == nil {
			in := h.inUse()
			in.nftGone = in.nftGone || in.backend == rules.IPTables
			return nil
		}
		if pass == passes || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		h.opts.Log.Warn("transaction rejected, retrying", "error", err, "attempt", pass)
		if read, err = h.startFilterRead(ctx); err != nil {
			return err
		}
	}
}

// transaction is an input that a program applies completely or not at all.
type transaction struct {
	program string
	args    []string
	script  string
	fail    func(error) error // adds what failed
	cleans  bool              // it removes what an earlier run or setting left
}

func (h *Host) nftTransaction(script string) transaction {
	return transaction{program: h.nft, args: []string{"-f", "-"}, script: script, fail: func(err error) error {
		return fmt.Errorf("%w: %w", ErrConnmark, err)
	}}
}

// restoreTransaction waits for the iptables lock, which others hold for seconds at a time
// on nodes with many Services; the context bounds the wait.
func (h *Host) restoreTransaction(script string) transaction {
	return transaction{program: h.inUse().programs.restore, args: []string{"--noflush", "-w"}, script: script, fail: func(err error) error {
		return fmt.Errorf("%s: %w", restoreText(script, err), err)
	}}
}

func (h *Host) write(ctx context.Context, list []transaction, ordered bool) error {
	if !ordered {
		return h.run(ctx, list...)
	}
	for _, t := range list {
		if err := h.run(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// run runs transactions concurrently.
func (h *Host) run(ctx context.Context, list ...transaction) error {
	var errs []error
	started := make([]*process, len(list))
	for i, t := range list {
		p, err := h.start(ctx, t.script, t.program, t.args...)
		if err != nil {
			errs = append(errs, t.fail(err))
			continue
		}
		p.run.Cleans = t.cleans
		started[i] = p
	}
	for i, p := range started {
		if p == nil {
			continue
		}
		if _, err := p.wait(); err != nil {
			errs = append(errs, list[i].fail(err))
			continue
		}
		h.opts.Log.Info("packet filter changed", "program", p.run.Program, "script", list[i].script)
	}
	return errors.Join(errs...)
}

var failedLine = regexp.MustCompile(`line:? (\d+)`)

// restoreText returns upstream's message for the rule that iptables-restore refused, found
// by the line in its error.
func restoreText(script string, err error) string {
	var failed *ProgramError
	if !errors.As(err, &failed) {
		return textNoIPTables
	}
	m := failedLine.FindStringSubmatch(failed.Message)
	if m == nil {
		return textNoIPTables
	}
	line, _ := strconv.Atoi(m[1]) // digits, by the pattern; too large is beyond the script
	if verb, rule, ok := rules.Describe(script, line); ok {
		return fmt.Sprintf(textChangeRule, verb, rule)
	}
	return textChangeChain
}
