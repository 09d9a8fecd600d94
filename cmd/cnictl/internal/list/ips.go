package list

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/completion"
	"cnictl/cmd/cnictl/internal/follow"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/sweep"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/inventory"
)

// search is what cnictl ips looks for.
type search struct {
	Names []string // of nodes; none: all
	IP    netip.Addr
	Pod   introspect.PodRef
	list  *output.List[inventory.HeldAddress]
}

// NewIPs builds cnictl ips: the addresses of all nodes in one list, and which pod has a given
// address.
func NewIPs(f *cli.Factory) *cobra.Command {
	opts := &search{list: Addresses(true)}
	var ip, pod string
	by := &sums{}
	cmd := opts.list.Command(f, &cobra.Command{
		Use:     "ips [NODE…]",
		Aliases: []string{"ip"},
		Short:   "List the addresses of all nodes, or find the node, ENI and pod of one",
		Long: `List the addresses of all nodes, or of the nodes given: state (assigned, cooling, free),
time in that state, pod and ENI. Addresses of a prefix that were never used share one line.

--ip and --pod search for an address; an argument that is an IP address, but not of a node,
is taken as --ip. Exit code 6 means that no pool has it; 4 means that it
was not found but some nodes could not be read.

--by sums up who takes the addresses: namespace, owner (the Deployment, StatefulSet and so on of
the pods), group (the managed node group or node pool), subnet or node. FREE is its share of what
pools keep free: the free addresses of each node are divided by the used ones. With --replay
it also counts address-hours and the change since the recording began; by namespace, as if a node's
addresses had been divided before they were first read as they were then. The ENIs' own addresses
and branch ENIs are in no pool, and do not count.`,
		Example: "  " + f.Name + " ips --ip 10.0.1.7\n  " + f.Name + " ips --pod shop/cart-7d9f-1\n  " +
			f.Name + " ips --filter 'state=cooling for>20s'\n  " + f.Name + " ips --by namespace\n  " + f.Name + " ips --by owner -n shop -o json",
	}, func(ctx context.Context, args []string) error {
		opts.Names = args
		if by.list != nil {
			return by.command().Run(ctx, f, args)
		}
		if err := opts.find(f, ip, pod); err != nil {
			return err
		}
		opts.settle(ctx, f)
		return opts.command().Run(ctx, f, opts.Names)
	})
	cmd.Flags().StringVar(&ip, "ip", "", "find this `ADDRESS`")
	cmd.Flags().StringVar(&pod, "pod", "", "find the addresses of this pod, `NAMESPACE/NAME`")
	_ = cmd.RegisterFlagCompletionFunc("pod", completion.Pod(f)) // fails only for unknown flags
	by.register(f, cmd, opts)
	return cmd
}

// find parses what to look for.
func (o *search) find(f *cli.Factory, ip, pod string) (err error) {
	if ip != "" {
		if o.IP, err = netip.ParseAddr(ip); err != nil {
			return cli.Usage("--ip=%s is not an IP address", ip)
		}
		o.IP = o.IP.Unmap()
	}
	if pod != "" {
		if o.Pod, err = f.Pod(pod, f.Globals.Kube.Namespace); err != nil {
			return err
		}
		o.list.In = nil // the name says more, also than a default of --namespace
	}
	return nil
}

// settle treats an argument as --ip if it is an IP address and not a node's.
func (o *search) settle(ctx context.Context, f *cli.Factory) {
	if len(o.Names) != 1 || o.IP.IsValid() {
		return
	}
	ip, err := netip.ParseAddr(o.Names[0])
	if err != nil {
		return
	}
	var failed *cli.Error
	if _, err := access.Find(ctx, f, o.Names); errors.As(err, &failed) && failed.Code == cli.ExitNotFound {
		o.Names, o.IP = nil, ip.Unmap()
	}
}

// searches reports whether a particular address or pod is wanted, and which.
func (o *search) searches(f *cli.Factory) (string, bool) {
	var what []string
	if o.IP.IsValid() {
		what = append(what, "address "+o.IP.String())
	}
	if o.Pod.Name != "" {
		what = append(what, "pod "+o.Pod.Namespace+"/"+o.Pod.Name)
	} else if namespace := f.Globals.Kube.Namespace; namespace != "" && len(what) > 0 {
		what = append(what, "a pod in namespace "+namespace)
	}
	return strings.Join(what, " of "), len(what) > 0
}

// rows returns the addresses of nodes that match the search.
func (o *search) rows(nodes []document.NodeIPAM) []inventory.HeldAddress {
	rows := []inventory.HeldAddress{}
	for _, n := range nodes {
		for _, a := range inventory.Addresses(n) {
			if o.Pod.Name != "" && (a.PodName != o.Pod.Name || a.PodNamespace != o.Pod.Namespace) {
				continue
			}
			if o.IP.IsValid() {
				if !o.list.Selects(a) || !a.CIDR.Contains(o.IP) || a.Count == 1 && a.Address != o.IP.String() {
					continue
				}
				a.Address, a.Count = o.IP.String(), 1
			}
			rows = append(rows, a)
		}
	}
	if o.IP.IsValid() && len(rows) > 1 {
		rows = recorded(rows)
	}
	return rows
}

// recorded drops the row that covers a prefix's never used addresses when an address in it
// has a record of its own.
func recorded(rows []inventory.HeldAddress) []inventory.HeldAddress {
	kept := rows[:0:0]
	for i, a := range rows {
		rest := a.AssignedAt == nil && a.UnassignedAt == nil && a.State == introspect.AddressFree
		other := false
		for j, b := range rows {
			other = other || i != j && a.Node == b.Node && a.CIDR == b.CIDR
		}
		if !rest || !other {
			kept = append(kept, a)
		}
	}
	return kept
}

// command is the list of what is looked for.
func (o *search) command() Command[inventory.HeldAddress] {
	return Command[inventory.HeldAddress]{
		List: o.list, Query: fleet.Query{ENIs: true}, Rows: o.found,
		Document: func(r *Reading, chosen []inventory.HeldAddress) any {
			return document.AddressList{
				APIVersion: introspect.APIVersion, Kind: document.KindAddressList, SampledAt: &r.SampledAt,
				Items: inventory.AddressItems(chosen), Partial: r.Partial, Errors: r.Errors,
			}
		},
		Follow: func(ctx context.Context, f *cli.Factory, names []string) error {
			return follow.Rows(ctx, f, names, o.list, o.rows)
		},
	}
}

// found returns the rows of a reading; it is an error if what is looked for is not there.
func (o *search) found(_ context.Context, f *cli.Factory, r *Reading) ([]inventory.HeldAddress, error) {
	rows := o.rows(r.Items)
	what, search := o.searches(f)
	if !search || r.Interrupted {
		return rows, nil
	}
	if len(rows) == 0 {
		return nil, o.notFound(f, what, r)
	}
	r.Judge = func() error { // nodes that could not be read do not matter
		_ = sweep.Verdict(f, r.NodeIPAMList, false) // it warns of them
		return nil
	}
	return rows, nil
}

// notFound is the error if no node that reported its addresses has the wanted one.
func (o *search) notFound(f *cli.Factory, what string, r *Reading) error {
	var silent []document.NodeError // these may have it
	asked := 0
	for _, n := range r.Items {
		if fleet.Failed(n) || n.State != document.StateNoDaemon {
			asked++
		}
		if fleet.Failed(n) && n.ENIs == nil {
			silent = append(silent, document.NodeError{Node: n.Metadata.Name, Reason: n.Error.Reason, Message: n.Error.Message})
		}
	}
	if len(silent) == 0 || f.Globals.AllowPartial && len(silent) < asked {
		return nowhere(f, what, asked-len(silent))
	}
	if output.Structured(f) {
		if err := output.PrintDocument(f, o.command().Document(r, nil), false); err != nil {
			return err
		}
	}
	of := fmt.Sprintf("%d of %s", len(silent), human.Plural(asked, "node", "nodes"))
	switch {
	case f.Recording != nil:
		return &cli.Error{
			Code: cli.ExitPartial, What: "no node whose addresses are in the recording has " + what,
			Why: "the recording does not include the addresses of " + of + ": " + sweep.Unread(f, silent),
		}
	case len(silent) == asked:
		return sweep.Verdict(f, r.NodeIPAMList, false)
	}
	return &cli.Error{Code: cli.ExitPartial, What: "no node that answered has " + what,
		Why: of + " did not answer: " + sweep.Unread(f, silent)}
}

// nowhere is the error for an address or a pod that is in no pool.
func nowhere(f *cli.Factory, what string, nodes int) error {
	e := &cli.Error{Code: cli.ExitNotFound, What: what + " not found", Why: "no pool of " + human.Plural(nodes, "node", "nodes") + " has it"}
	if strings.HasPrefix(what, "pod") {
		e.Do = f.Name + " " + what
	} else {
		e.Do = "it may be a node's own address, a branch ENI's (" + f.Name + " pod NAMESPACE/NAME), or another program's"
	}
	return e
}
