package hostnet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/rtnl"
)

// Leftovers is what the kernel of the thread's namespace has of ours, of any release and
// whatever the settings were.
type Leftovers struct {
	// Pods are the host links of living pods. They are removed like all else.
	Pods []string
	// Kept are secondary ENIs that look like ours and stay: others configure them.
	Kept []string

	host    *Host
	filters []filterLeftovers
	nft     bool // the native table is there
	kernel  rules.Remnants
	index   map[string]int32 // of links
}

// filterLeftovers is what one rule set has.
type filterLeftovers struct {
	pair
	rules.FilterRemoval
}

// Change is an object that uninstalling removes.
type Change struct {
	Object string
	Err    error // why it is still there
}

// FindLeftovers reads both back ends of iptables, nft and rtnetlink. It changes nothing.
// What cannot be read comes back beside what was found.
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

// missingError says what was not looked for.
func missingError(program string) error {
	return fmt.Errorf("run %s: it is not installed; run this in a container of the image, which has it", program)
}

// filterPrograms are those of both back ends and families that there are, or those
// without a mode in their name; missing are the families that have none.
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
	save, err := l.host.start(exec.CommandContext(ctx, p.save), "")
	if err != nil {
		return rules.FilterRemoval{}, err
	}
	text, err := save.wait()
	if err != nil {
		return rules.FilterRemoval{}, err
	}
	now, err := rules.ParseSave(text)
	if err != nil {
		return rules.FilterRemoval{}, err
	}
	return rules.RemoveRuleset(now), nil
}

// readNFT looks for the native table. What is in it does not matter: the name is ours.
func (l *Leftovers) readNFT(ctx context.Context) (there bool, _ error) {
	path, err := lookPath("nft")
	if errors.Is(err, exec.ErrNotFound) {
		return false, missingError("nft")
	}
	if err != nil {
		return false, err
	}
	l.host.programs.nft = path
	list, err := l.host.start(exec.CommandContext(ctx, path, "list", "table", "ip", netnames.NFTTable), "")
	if err != nil {
		return false, err
	}
	_, err = list.wait()
	if noSuchTable(err) {
		return false, nil
	}
	return err == nil, err
}

func (l *Leftovers) readKernel(c *rtnl.Conn, vethPrefix string) error {
	k := rules.Kernel{VethPrefix: vethPrefix}
	links, err := c.Links()
	if err != nil {
		return err
	}
	l.index = make(map[string]int32, len(links))
	names := make(map[int32]string, len(links))
	for _, link := range links {
		names[link.Index], l.index[link.Name] = link.Name, link.Index
		k.Links = append(k.Links, rules.Link{Name: link.Name, Kind: link.Kind})
	}
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		if err := readFamily(c, family, names, &k); err != nil {
			return err
		}
	}
	l.kernel = rules.Remains(k)
	l.Pods, l.Kept = l.kernel.Pods, l.kernel.Kept
	return nil
}

func readFamily(c *rtnl.Conn, family uint8, names map[int32]string, k *rules.Kernel) error {
	list, err := c.Rules(family)
	if err != nil {
		return err
	}
	for _, r := range list {
		k.Rules = append(k.Rules, wantedForm(r))
		if r.Maker != unix.RTPROT_UNSPEC {
			k.Signed = append(k.Signed, wantedForm(r))
		}
	}
	addresses, err := c.Addresses(family)
	if err != nil {
		return err
	}
	for _, a := range addresses {
		k.Addresses = append(k.Addresses, rules.LinkAddress{Link: names[a.Link], Prefix: a.Prefix, Leased: a.Expires})
	}
	tables, err := tablesInUse(family)
	if err != nil {
		return err
	}
	for _, table := range tables {
		routes, err := c.Routes(family, table)
		if err != nil {
			return err
		}
		for _, r := range routes {
			k.Routes = append(k.Routes, rules.LinkRoute{
				Route: rules.Route{Dst: r.Dst, Gateway: r.Gateway, Source: r.Source, Table: r.Table}, Link: names[r.Link],
			})
		}
	}
	return nil
}

// Objects lists what there is to remove.
func (l *Leftovers) Objects() (out []string) {
	for _, f := range l.filters {
		for _, o := range f.Objects {
			out = append(out, f.name+" "+o)
		}
	}
	if l.nft {
		out = append(out, nftObject)
	}
	for _, s := range l.steps() {
		out = append(out, s.object)
	}
	return out
}

const nftObject = "nft table ip " + netnames.NFTTable

// Remove removes everything and says what of it is still there. A second call on what
// FindLeftovers finds then goes on where the first one ended.
func (l *Leftovers) Remove(ctx context.Context) (changes []Change) {
	for _, f := range l.filters {
		var err error
		if f.Script != "" {
			err = l.host.run(ctx, transaction{f.restore, []string{"--noflush", "-w"}, f.Script, func(err error) error { return err }})
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
		err := l.host.run(ctx, transaction{l.host.programs.nft, []string{"-f", "-"}, script, func(err error) error { return err }})
		changes = append(changes, Change{nftObject, err})
	}
	return append(changes, l.apply()...)
}

var errHeld = errors.New("emptied only, because rules of somebody else lead to it; remove those first")

// step is a change over rtnetlink, of one message.
type step struct {
	object string
	add    func(*rtnl.Batch)
}

// steps are in the order in which they must be made. Routes of an ENI come behind its
// address, by which they are found again should the daemon be killed between.
func (l *Leftovers) steps() (list []step) {
	k := l.kernel
	for _, name := range append(append([]string{}, k.Pods...), k.Devices...) {
		list = append(list, step{"link " + name, func(b *rtnl.Batch) {
			b.LinkDel(l.index[name])
			b.Tolerate(unix.ENODEV)
		}})
	}
	for _, r := range k.Restore {
		list = append(list, step{"(back to its place) " + ruleObject(r), func(b *rtnl.Batch) {
			b.RuleAdd(netlinkRule(r))
			b.Tolerate(unix.EEXIST)
		}})
	}
	for _, r := range k.Rules {
		list = append(list, step{ruleObject(r), func(b *rtnl.Batch) {
			b.RuleDel(netlinkRule(r))
			b.Tolerate(unix.ENOENT)
		}})
	}
	for _, a := range k.Addresses {
		list = append(list, step{"address " + a.Prefix.String() + " of link " + a.Link, func(b *rtnl.Batch) {
			b.AddrDel(rtnl.Address{Link: l.index[a.Link], Prefix: a.Prefix})
			b.Tolerate(unix.EADDRNOTAVAIL)
		}})
	}
	for _, r := range k.Routes {
		list = append(list, step{"route " + r.String() + " dev " + r.Link, func(b *rtnl.Batch) {
			b.RouteDel(netlinkRoute(r.Route, l.index[r.Link]))
			b.Tolerate(unix.ESRCH)
		}})
	}
	return list
}

func ruleObject(r rules.IPRule) string {
	family := ""
	if r.IPv6 {
		family = "-6 "
	}
	return "ip " + family + "rule " + strings.ReplaceAll(r.String(), "\t", " ")
}

// stepsAtOnce stays below the kernel's send buffer.
const stepsAtOnce = 100

func (l *Leftovers) apply() (changes []Change) {
	all := l.steps()
	for len(all) > 0 {
		list := all[:min(len(all), stepsAtOnce)]
		all = all[len(list):]
		var b rtnl.Batch
		for _, s := range list {
			s.add(&b)
		}
		err := with(func(c *rtnl.Conn) error { return c.Do(&b) })
		var refused *rtnl.Error
		for i, s := range list {
			change := Change{Object: s.object}
			switch errno := b.Errno(i); {
			case err == nil:
			case !errors.As(err, &refused): // the socket's: nothing is known to have happened
				change.Err = err
			case errno != 0:
				change.Err = errno
			}
			changes = append(changes, change)
		}
	}
	return changes
}
