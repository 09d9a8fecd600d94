package hostnet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"slices"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/iptables"
	"cnictl/daemon/netstate"
	"cnictl/daemon/rtnl"
)

// Leftovers are our objects in the kernel, in the thread's namespace, from any release and
// with any settings.
type Leftovers struct {
	// Pods are the host links of living pods. They are removed like everything else.
	Pods []string
	// Kept are secondary ENIs that look like ours but stay, because others configure them.
	Kept []string

	host    *Host
	filters []filterLeftovers
	nft     bool              // the native table exists
	changes []netstate.Change // over rtnetlink
}

// filterLeftovers are the leftovers in one rule set.
type filterLeftovers struct {
	pair
	rules.FilterRemoval
}

// Change is an object that uninstalling removes.
type Change struct {
	Object string
	Err    error // why it is still there
}

// FindLeftovers reads both iptables backends, nft and rtnetlink. It changes nothing. If
// some of them cannot be read, it returns an error besides what it found.
func FindLeftovers(ctx context.Context, log *slog.Logger, vethPrefix string) (*Leftovers, error) {
	l := &Leftovers{host: &Host{opts: Options{Log: log}}}
	var errs []error
	programs, missing := filterPrograms()
	for _, family := range missing {
		errs = append(errs, missingError(family))
	}
	for _, p := range programs {
		f := filterLeftovers{pair: p}
		var err error
		if f.FilterRemoval, err = l.readFilter(ctx, p); err != nil {
			errs = append(errs, fmt.Errorf("read rules of %s: %w", p.name, err))
		}
		l.filters = append(l.filters, f)
	}
	var err error
	if l.nft, err = l.readNFT(ctx); err != nil {
		errs = append(errs, fmt.Errorf("look for table ip %s: %w", netnames.NFTTable, err))
	}
	if err := with(func(c *rtnl.Conn) error { return l.readKernel(c, vethPrefix) }); err != nil {
		errs = append(errs, err)
	}
	return l, errors.Join(errs...)
}

// missingError is the error for a program that is not installed.
func missingError(program string) error {
	return fmt.Errorf("run %s: it is not installed; run this in a container of the image, which has it", program)
}

// filterPrograms returns the existing programs of both backends and families, or those
// without a mode in their name. missing are the families without any.
func filterPrograms() (list []pair, missing []string) {
	for _, family := range []string{"iptables", "ip6tables"} {
		found := false
		for _, mode := range []string{"-nft", "-legacy"} {
			p := findPair(family + mode)
			found = found || p.there()
			if p.there() && (mode == "-nft" || inUse(legacyTables(family))) {
				list = append(list, p)
			}
		}
		switch p := findPair(family); {
		case found:
		case p.there():
			list = append(list, p)
		default:
			missing = append(missing, family)
		}
	}
	return list, missing
}

func (l *Leftovers) readFilter(ctx context.Context, p pair) (rules.FilterRemoval, error) {
	save, err := l.host.start(ctx, "", p.save)
	if err != nil {
		return rules.FilterRemoval{}, err
	}
	text, err := save.wait()
	if err != nil {
		return rules.FilterRemoval{}, err
	}
	now, err := iptables.ParseSave(text)
	if err != nil {
		return rules.FilterRemoval{}, err
	}
	return rules.RemoveRuleset(now), nil
}

// readNFT looks for the native table. Its content does not matter, as the name is ours.
func (l *Leftovers) readNFT(ctx context.Context) (there bool, _ error) {
	path, err := lookPath("nft")
	if errors.Is(err, exec.ErrNotFound) {
		return false, missingError("nft")
	}
	if err != nil {
		return false, err
	}
	l.host.nft = path
	list, err := l.host.start(ctx, "", path, "list", "table", "ip", netnames.NFTTable)
	if err != nil {
		return false, err
	}
	_, err = list.wait()
	if noSuchTable(err) {
		return false, nil
	}
	return err == nil, err
}

func (l *Leftovers) readKernel(c *rtnl.Conn, vethPrefix string) (err error) {
	k := rules.Kernel{VethPrefix: vethPrefix}
	families := []uint8{unix.AF_INET, unix.AF_INET6}
	if k.State, err = readState(c, families...); err != nil {
		return err
	}
	k.Rules = nil // read again, to include those whose link is gone
	for _, family := range families {
		list, err := c.ListedRules(family)
		if err != nil {
			return err
		}
		for _, r := range list {
			k.Rules = append(k.Rules, r.Rule)
			if r.Maker != unix.RTPROT_UNSPEC {
				k.Signed = append(k.Signed, r.Rule)
			}
		}
	}
	found := rules.Leftovers(k)
	for _, pod := range found.Pods {
		l.Pods = append(l.Pods, pod.Name)
	}
	l.Kept, l.changes = found.Kept, found.Changes(k.State)
	return nil
}

// Objects lists the objects to remove.
func (l *Leftovers) Objects() (out []string) {
	for _, f := range l.filters {
		for _, o := range f.Objects {
			out = append(out, f.name+" "+o)
		}
	}
	if l.nft {
		out = append(out, nftObject)
	}
	for _, c := range l.changes {
		out = append(out, objectOf(c))
	}
	return out
}

const nftObject = "nft table ip " + netnames.NFTTable

// Remove removes everything and returns each object, with an error if it is still there.
// After a failure, a new FindLeftovers and Remove continue where this one ended.
func (l *Leftovers) Remove(ctx context.Context) (changes []Change) {
	for _, f := range l.filters {
		var err error
		if f.Script != "" {
			err = l.host.run(ctx, transaction{program: f.restore, args: []string{"--noflush", "-w"}, script: f.Script, fail: func(err error) error { return err }})
		}
		for _, o := range f.Objects {
			changes = append(changes, Change{f.name + " " + o, err})
		}
		for _, chain := range f.Held {
			changes = append(changes, Change{f.name + " " + chain, errHeld})
		}
	}
	if l.nft {
		script := rules.DiffNFT(&rules.NFTTable{}, nil)
		err := l.host.run(ctx, transaction{program: l.host.nft, args: []string{"-f", "-"}, script: script, fail: func(err error) error { return err }})
		changes = append(changes, Change{nftObject, err})
	}
	return append(changes, l.apply()...)
}

var errHeld = errors.New("only flushed: another program's rules still reference it; remove those first")

// objectOf names the object that a change removes, or adds in the case of a rule.
func objectOf(c netstate.Change) string {
	text := c.Object()
	if c.Rule != (netstate.Rule{}) {
		text = "ip " + text
		if c.Rule.IPv6 {
			text = "ip -6 " + c.Object()
		}
	}
	if c.Do == netstate.AddRule {
		text = "(back to its place) " + text
	}
	return text
}

// changesAtOnce stays below the kernel's send buffer.
const changesAtOnce = 100

func (l *Leftovers) apply() (out []Change) {
	for list := range slices.Chunk(l.changes, changesAtOnce) {
		var b rtnl.Batch
		for _, c := range list {
			b.Change(c)
		}
		err := with(func(c *rtnl.Conn) error { return c.Do(&b) })
		var refused *rtnl.Error
		for i, c := range list {
			done := Change{Object: objectOf(c)}
			switch {
			case err == nil:
			case !errors.As(err, &refused): // the socket failed: assume that nothing happened
				done.Err = err
			case !b.Took(i):
				done.Err = b.Errno(i)
			}
			out = append(out, done)
		}
	}
	return out
}
