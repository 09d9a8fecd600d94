package hostnet

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/hostnet/rules"
)

// ErrConnmark is wrapped by errors of the native table.
var ErrConnmark = errors.New("host network setup: set up nftables connmark")

// passes bounds how often a pass over the filters starts again because a
// transaction was refused: somebody else changed what had just been read.
const passes = 3

// filterView is what the two tools say.
type filterView struct {
	ruleset    rules.Ruleset
	nft        *rules.NFTTable
	nftUnknown bool // there is a table that cannot be understood
}

// filterRead is a view being read.
type filterRead struct{ save, nft *process }

// startFilterRead starts both tools, or only iptables-save where no native table
// can be.
func (h *Host) startFilterRead(ctx context.Context) (r filterRead, _ error) {
	var err error
	if r.save, err = h.start(exec.CommandContext(ctx, h.programs.save), ""); err != nil {
		return r, fmt.Errorf("%s: %w", textNoIPTables, err)
	}
	if h.programs.nft == "" || h.nftGone {
		return r, nil
	}
	r.nft, err = h.start(exec.CommandContext(ctx, h.programs.nft, "list", "table", "ip", netnames.NFTTable), "")
	if err != nil && h.backend == rules.NFTables {
		_, _ = r.save.wait() // the start of nft is the cause worth telling
		return r, fmt.Errorf("%w: %w", ErrConnmark, err)
	}
	return r, nil
}

// finish waits for the tools, always for both.
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
	if v.ruleset, err = rules.ParseSave(saved); err != nil {
		return v, fmt.Errorf(textCheckRule+": %w", firstRule(want.Ruleset), err)
	}
	for _, t := range want.Ruleset.Tables {
		if slices.Contains(v.ruleset.Foreign, t.Name) {
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
		var failed *ProgramError
		if errors.As(err, &failed) && strings.Contains(failed.Message, "No such file or directory") {
			return nil // no such table
		}
		if h.backend == rules.IPTables { // a kernel without nf_tables has no table either
			h.opts.Log.Warn("native table cannot be listed, taken as absent", "error", err)
			return nil
		}
		return err
	}
	if v.nft, err = rules.ParseNFT(out); err != nil {
		h.opts.Log.Warn("native table is not understood, will be replaced", "error", err)
		v.nftUnknown = true
	}
	return nil
}

// firstRule names the rule that the original would have asked for first.
func firstRule(want rules.Ruleset) string {
	script := rules.DiffRuleset(rules.Ruleset{}, want)
	for line := range strings.Count(script, "\n") {
		if _, rule, ok := rules.Describe(script, line+1); ok {
			return rule
		}
	}
	return "rules"
}

// scripts are the transactions that turn a view into the wanted state.
func (v filterView) scripts(want rules.NodeState) (restore, nft string) {
	restore = rules.DiffRuleset(v.ruleset, want.Ruleset)
	switch {
	case v.nftUnknown && want.NFT != nil:
		nft = rules.ReplaceNFT(*want.NFT)
	case v.nftUnknown:
		nft = rules.DiffNFT(&rules.NFTTable{}, nil)
	default:
		nft = rules.DiffNFT(v.nft, want.NFT)
	}
	return restore, nft
}

// setFilters finishes a read and writes what differs, again from the start when a
// transaction is refused.
func (h *Host) setFilters(ctx context.Context, read filterRead, want rules.NodeState) error {
	for pass := 1; ; pass++ {
		view, err := h.finishFilterRead(read, want)
		if err != nil {
			return err
		}
		restore, nft := view.scripts(want)
		err = h.write(ctx, restore, nft)
		if err == nil {
			h.nftGone = h.nftGone || h.backend == rules.IPTables
			return nil
		}
		if pass == passes || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		h.opts.Log.Warn("transaction refused, reading again", "error", err, "attempt", pass)
		if read, err = h.startFilterRead(ctx); err != nil {
			return err
		}
	}
}

// write applies both transactions. Marks of the wanted back end are set up before
// those of the other one go.
func (h *Host) write(ctx context.Context, restore, nft string) error {
	steps := []func() error{
		func() error { return h.writeNFT(ctx, nft) },
		func() error { return h.writeRestore(ctx, restore) },
	}
	if h.backend == rules.IPTables {
		slices.Reverse(steps)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (h *Host) writeNFT(ctx context.Context, script string) error {
	if script == "" {
		return nil
	}
	if err := h.feed(ctx, h.programs.nft, script, "-f", "-"); err != nil {
		return fmt.Errorf("%w: %w", ErrConnmark, err)
	}
	h.opts.Log.Info("native table changed", "script", script)
	return nil
}

func (h *Host) writeRestore(ctx context.Context, script string) error {
	if script == "" {
		return nil
	}
	// -w: the lock of iptables, held for seconds at a time on nodes with many
	// Services; ctx bounds the wait.
	if err := h.feed(ctx, h.programs.restore, script, "--noflush", "-w"); err != nil {
		return fmt.Errorf("%s: %w", restoreText(script, err), err)
	}
	h.opts.Log.Info("iptables rules changed", "script", script)
	return nil
}

func (h *Host) feed(ctx context.Context, path, script string, args ...string) error {
	p, err := h.start(exec.CommandContext(ctx, path, args...), script)
	if err != nil {
		return err
	}
	_, err = p.wait()
	return err
}

var failedLine = regexp.MustCompile(`line:? (\d+)`)

// restoreText says in the original's words which rule iptables-restore refused: it
// names the line.
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
