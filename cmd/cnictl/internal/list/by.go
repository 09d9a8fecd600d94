package list

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/record"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/query"
	"cnictl/tui/show"
)

type use = document.AddressUse

// sums is ips --by: the flags of the list, for rows of another kind.
type sums struct {
	by   string
	list *output.List[use]
}

// register adds --by to a command whose flags are those of the list of addresses.
func (s *sums) register(f *cli.Factory, cmd *cobra.Command, opts *search) {
	names := make([]string, 0, len(inventory.Bys()))
	for _, by := range inventory.Bys() {
		names = append(names, string(by))
	}
	words := strings.Join(names, ", ")
	cmd.Flags().StringVar(&s.by, "by", "", "sum up the addresses by `WHAT`: "+words)
	_ = cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)) // fails only for unknown flags
	check := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		l := opts.list
		switch changed := cmd.Flags().Changed; {
		case !changed("by"):
			return check(cmd, args)
		case !slices.Contains(names, s.by):
			return cli.Usage("--by %q: one of %s", s.by, words)
		case l.Watching() || changed("ip") || changed("pod"):
			return cli.Usage("--by sums up all addresses once: leave out --ip, --pod and --watch")
		}
		s.list = &output.List[use]{
			Columns: useColumns(inventory.By(s.by)), Item: func(u use) any { return u },
			Key:    func(u use) string { return u.Namespace + "/" + u.Name },
			Filter: l.Filter, SortBy: l.SortBy, Only: l.Only,
		}
		return s.list.Check(f)
	}
}

// useColumns returns the columns of sums.
func useColumns(by inventory.By) []query.Column[use] {
	name := query.Column[use]{Name: string(by), Header: strings.ToUpper(string(by))}
	name.Text = func(u use) string { return show.OrUnknown(u.Name) }
	switch by {
	case inventory.ByNamespace:
		name.Title = "namespace of the pods"
	case inventory.ByOwner:
		name.Title = "controller of the pods, KIND/NAME"
	case inventory.ByGroup:
		name.Title = "managed node group or node pool, by the labels of the Node"
	case inventory.BySubnet:
		name.Title = "subnet of the ENIs"
	case inventory.ByNode:
		name.Title = "node"
	}
	float := func(name, header, title string, of func(use) *float64) query.Column[use] {
		return query.Column[use]{
			Name: name, Header: header, Title: title, Right: true,
			Text: func(u use) string {
				if of(u) == nil {
					return show.Unknown
				}
				return strconv.FormatFloat(*of(u), 'f', 1, 64)
			},
			Number: func(u use) (float64, bool) {
				if of(u) == nil {
					return 0, false
				}
				return *of(u), true
			},
		}
	}
	share := float("share", "SHARE", "of all used addresses, in percent", func(u use) *float64 {
		if u.Share == nil {
			return nil
		}
		return new(100 * *u.Share)
	})
	share.Unit, share.Drop = "%", 2
	warm := float("warm", "WARM", "its share of the addresses that pools keep free: of each node, by used addresses",
		func(u use) *float64 { return &u.Warm }).Headed("FREE")
	hours := float("hours", "ADDRESS-HOURS", "used addresses times hours, with a recording",
		func(u use) *float64 { return u.AddressHours })
	hours.Drop = 3
	change := query.Count("change", "CHANGE", "of the used addresses since the recording began", 4, func(u use) *int { return u.Change })
	change.CSV = []query.Column[use]{change}
	change.Text = func(u use) string {
		if u.Change == nil {
			return show.Unknown
		}
		return fmt.Sprintf("%+d", *u.Change)
	}
	out := []query.Column[use]{
		name,
		query.Count("assigned", "ASSIGNED", "addresses of its pods", 0, func(u use) *int { return &u.Assigned }).Headed("USED"),
		share,
		warm,
		query.Count("nodes", "NODES", "nodes on which it has addresses", 1, func(u use) *int { return &u.Nodes }),
		hours, change,
	}
	if by == inventory.ByOwner {
		space := query.Column[use]{Name: "namespace", Header: "NAMESPACE", Title: "namespace of the pods"}
		space.Text = func(u use) string { return show.OrUnknown(u.Namespace) }
		out = slices.Insert(out, 0, space)
	}
	return out
}

// command sums up the addresses of nodes once.
func (s *sums) command() Command[use] {
	doc := document.AddressUseList{APIVersion: introspect.APIVersion, Kind: document.KindAddressUseList, By: s.by}
	return Command[use]{
		List: s.list, Query: fleet.Query{ENIs: true},
		Rows: func(ctx context.Context, f *cli.Factory, r *Reading) ([]use, error) {
			of := inventory.Summing{By: inventory.By(s.by), Namespace: f.Globals.Kube.Namespace}
			if of.By == inventory.ByOwner && !r.Interrupted {
				var err error
				if of.Owner, err = owners(ctx, f, of.Namespace); err != nil {
					return nil, err
				}
			}
			if of.Owner == nil {
				of.Owner = func(string, introspect.PodRef) string { return "" }
			}
			sum(&doc, of.Uses(store.Of(r.Items).Nodes))
			if f.Recording != nil && of.By != inventory.ByOwner {
				past(f.Recording, of, r.Nodes.Names(), &doc)
			}
			return doc.Items, nil
		},
		Document: func(r *Reading, chosen []use) any {
			out := doc
			out.Items, out.Partial, out.Errors, out.SampledAt = chosen, r.Partial, r.Errors, r.SampledAt
			return out
		},
	}
}

// sum sets the rows of a document, and what they add up to.
func sum(doc *document.AddressUseList, uses []inventory.AddressUse) {
	doc.Items = []use{}
	for _, u := range uses {
		doc.Assigned, doc.Warm = doc.Assigned+u.Assigned, doc.Warm+u.Warm
	}
	for _, u := range uses {
		one := use{Name: u.Name, Namespace: u.Namespace, Assigned: u.Assigned, Warm: u.Warm, Nodes: u.Nodes}
		if doc.Assigned > 0 {
			one.Share = new(float64(u.Assigned) / float64(doc.Assigned))
		}
		doc.Items = append(doc.Items, one)
	}
}

// past adds address-hours and changes of a recording up to now. Those that have no address any more get a
// row too.
func past(p *record.Player, of inventory.Summing, names []string, doc *document.AddressUseList) {
	now := p.Now()
	from, _ := p.Range()
	here := func(name string) bool { return slices.Contains(names, name) }
	hours, past := inventory.NewHours(of, from), store.New()
	p.Samples(func(sample record.Sample) bool {
		switch {
		case sample.At.After(now):
			return false
		case !here(sample.Name):
		case sample.Node == nil:
			past.Remove(sample.Name)
			hours.Sample(sample.Name, nil, sample.At)
		default:
			past.PutAt(*sample.Node, sample.At)
			hours.Sample(sample.Name, past.Node(sample.Name), sample.At)
		}
		return true
	})
	sum, first := hours.End(now)
	var gone []use
	for k, hours := range sum {
		if hours > 0 && !slices.ContainsFunc(doc.Items, func(u use) bool { return u.Name == k.Name && u.Namespace == k.Namespace }) {
			gone = append(gone, use{Name: k.Name, Namespace: k.Namespace})
		}
	}
	slices.SortFunc(gone, func(a, b use) int { return strings.Compare(a.Name, b.Name) })
	doc.Items = append(doc.Items, gone...)
	span := now.Sub(from)
	for i := range doc.Items {
		u := &doc.Items[i]
		k := inventory.UseKey{Namespace: u.Namespace, Name: u.Name}
		u.AddressHours, u.Change = new(sum[k]), new(u.Assigned-int(math.Round(first[k])))
		if span >= time.Second {
			u.ChangePerHour = new(float64(*u.Change) / span.Hours())
		}
	}
	doc.From = new(from.UTC())
}

// owners lists the controllers of pods from Kubernetes.
func owners(ctx context.Context, f *cli.Factory, namespace string) (func(node string, pod introspect.PodRef) string, error) {
	none := func(why string) error {
		return &cli.Error{
			Code: cli.ExitUsage, What: "no owners of pods", Why: "Kubernetes knows the owners of pods, and " + why,
			Do: f.Name + " ips --by namespace" + f.SameNodes(),
		}
	}
	if f.Recording != nil {
		return nil, none("recordings do not have them")
	}
	api, err := access.Kubernetes(ctx, f)
	if err != nil {
		return nil, err
	}
	if api == nil {
		return nil, none("there is no API server")
	}
	limit, cancel := f.Deadline(ctx)
	defer cancel()
	all, err := api.AllPods(limit, watch.PodQuery{Namespace: namespace})
	if err != nil {
		return nil, access.ClusterError(f, "list the pods", err)
	}
	if all.WithoutOnly {
		return nil, &cli.Error{
			Code: cli.ExitFailure, What: "no owners of pods", Why: fmt.Sprintf("the cluster has more than %d pods", watch.MaxClusterPods),
			Do: f.Name + " ips --by owner -n NAMESPACE",
		}
	}
	by := map[introspect.PodRef]string{}
	for _, p := range all.Pods {
		by[p.PodRef] = p.Owner
	}
	return func(_ string, pod introspect.PodRef) string { return by[pod] }, nil
}
