package whatif

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	engine "cnictl/capacity/whatif"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/human"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/warmpool"
	"cnictl/tui/pages"
)

// The load: for an hour, each node replaces one pod a minute.
const (
	over      = time.Hour
	perMinute = 1
)

// runsPerStep is how many simulations a command runs before its results are shown; kept is how
// many are cached.
const (
	runsPerStep = 4
	kept        = 1 << 14
)

// key identifies a pool; nodes with equal pools share a simulation.
type key struct {
	model, instance                        string
	maxPods, maxENI                        int
	prefixes, custom, trunk                bool
	cooldown                               time.Duration
	warmENI, warmIP, minimumIP, warmPrefix int
	existing                               engine.Existing
	pods                                   int
}

func keyOf(n engine.Node, m engine.Model) key {
	s := n.Settings
	return key{
		m.Name, s.Instance.Type, s.MaxPods, s.MaxENI, s.PrefixDelegation, s.CustomNetworking, s.Trunk, s.Cooldown,
		s.WarmENI, s.WarmIP, s.MinimumIP, s.WarmPrefix, s.Existing, n.Pods,
	}
}

// group is a set of nodes with equal pools.
type group struct {
	engine.Node
	model engine.Model // of the daemon that they run
	key   key
	count int
}

// pair identifies a pool with its current and with its changed settings.
type pair struct{ today, changed key }

// simulation holds the nodes and the results so far. One command at a time uses it.
type simulation struct {
	groups []group // largest first
	known  outlook // from the nodes themselves, before any simulation
	runs   map[key]engine.Outlook
	next   map[pair][]warmpool.Action
}

func newSimulation() *simulation {
	return &simulation{runs: map[key]engine.Outlook{}, next: map[pair][]warmpool.Action{}}
}

// outlook is what the screen shows of a simulation.
type outlook struct {
	set         changes // the changes that were simulated
	nodes, pods int
	done        int    // nodes included in the sums
	instance    string // type of the largest group
	names       []string
	cannot      []reason
	today       map[string]spread
	idle        map[string]string // by setting, why all nodes' pools ignore it
	dry         int               // nodes whose subnets have no free address now
	full        []string          // these subnets

	was, will sum
	next      []plannedAction
}

// left returns how many nodes cannot be simulated.
func (o outlook) left() (n int) {
	for _, r := range o.cannot {
		n += r.count
	}
	return n
}

// reason is why some nodes cannot be simulated.
type reason struct {
	text  string
	count int
}

// sum totals what nodes hold and do.
type sum struct {
	enis                                         int
	held, wasted, cooling                        float64 // cooling are among wasted
	calls, attaches, assigns, releases, detaches float64 // per hour
	waited, failed                               int
}

func (s *sum) add(o engine.Outlook, cooldown time.Duration, count int) {
	n, r := float64(count), o.Run
	s.enis += count * o.Held.ENIs
	s.held += n * r.Held.Avg
	s.wasted += n * r.Wasted.Avg
	s.cooling += n * min(r.Wasted.Avg, perMinute*cooldown.Minutes()) // as many as leave while one cools
	s.calls += n * r.PerHour(r.Calls.Requests())
	s.attaches += n * r.PerHour(r.Calls.NewENIs)
	s.assigns += n * r.PerHour(r.Calls.Assigns)
	s.releases += n * r.PerHour(r.Calls.Releases)
	s.detaches += n * r.PerHour(r.Calls.Detaches)
	s.waited += count * r.Waited
	s.failed += count * r.Failed
}

// plannedAction is an action of the planner on some nodes, for one reason.
type plannedAction struct {
	kind   string
	reason warmpool.Reason
	nodes  int
	times  int
	count  int // of addresses or prefixes
	what   string
}

// take replaces the nodes with those of a view.
func (s *simulation) take(v *store.View, in func(*store.Node) bool) {
	s.groups, s.known = nil, outlook{today: map[string]spread{}}
	at, cannot, usual := map[key]int{}, map[string]int{}, map[string]map[string]int{}
	knobs := engine.Knobs()
	for _, n := range v.Nodes {
		if !in(n) {
			continue
		}
		node, why := fleet.WhatIf(n.NodeIPAM)
		if why != "" {
			cannot[why]++
			continue
		}
		s.known.nodes, s.known.pods, s.known.names = s.known.nodes+1, s.known.pods+node.Pods, append(s.known.names, n.Metadata.Name)
		if full := exhausted(n); len(full) > 0 {
			s.known.dry++
			for _, id := range full {
				if !slices.Contains(s.known.full, id) {
					s.known.full = append(s.known.full, id)
				}
			}
		}
		model := engine.Ours
		if pages.Upstream(n) {
			model = engine.Upstream
		}
		k := keyOf(node, model)
		i, ok := at[k]
		if !ok {
			i = len(s.groups)
			at[k] = i
			s.groups = append(s.groups, group{node, model, k, 0})
		}
		s.groups[i].count++
	}
	for why, n := range cannot {
		s.known.cannot = append(s.known.cannot, reason{why, n})
	}
	slices.SortFunc(s.known.cannot, func(a, b reason) int { return cmp.Or(b.count-a.count, cmp.Compare(a.text, b.text)) })
	slices.SortStableFunc(s.groups, func(a, b group) int { return b.count - a.count })
	if len(s.groups) > 0 {
		s.known.instance = s.groups[0].Settings.Instance.Type
	}
	for i, g := range s.groups {
		for _, k := range knobs {
			text := k.Text(g.Settings)
			if usual[k.Name] == nil {
				usual[k.Name] = map[string]int{}
			}
			usual[k.Name][text] += g.count
			n, _ := strconv.Atoi(text)
			x := s.known.today[k.Name]
			if i == 0 {
				x.least, x.most = n, n
			}
			x.least, x.most = min(x.least, n), max(x.most, n)
			s.known.today[k.Name] = x
		}
	}
	for name, counts := range usual {
		x := s.known.today[name]
		texts := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b)) })
		x.usual, x.same = texts[0], len(texts) == 1
		s.known.today[name] = x
	}
}

// exhausted returns the subnets of a node if none of them has a free address, by what its daemon last
// read: the simulation takes no notice of that.
func exhausted(n *store.Node) (full []string) {
	if n.Summary == nil {
		return nil
	}
	for _, subnet := range n.Summary.Subnets {
		if subnet.Available == nil || *subnet.Available > 0 {
			return nil
		}
		full = append(full, subnet.ID)
	}
	return full
}

// step simulates some more nodes and sums up all results so far.
func (s *simulation) step(set changes) outlook {
	if len(s.runs) > kept {
		s.runs, s.next = map[key]engine.Outlook{}, map[pair][]warmpool.Action{}
	}
	left := runsPerStep
	run := func(n engine.Node, m engine.Model, k key) (engine.Outlook, bool) {
		o, ok := s.runs[k]
		if !ok && left > 0 {
			left--
			o, ok = engine.Forecast(n, over, perMinute, m), true
			s.runs[k] = o
		}
		return o, ok
	}
	out := s.known
	out.set, out.idle = set, map[string]string{}
	sums := map[plannedAction]plannedAction{}
	for i, g := range s.groups {
		after := engine.Node{Settings: set.to(g.Settings), Pods: g.Pods}
		for _, name := range order {
			if why := after.Settings.Idle(name); i == 0 || why != out.idle[name] {
				out.idle[name] = sharedReason(i, why)
			}
		}
		k := keyOf(after, g.model)
		was, ok := run(g.Node, g.model, g.key)
		if !ok {
			continue
		}
		will, ok := run(after, g.model, k)
		if !ok {
			continue
		}
		p := pair{g.key, k}
		next, ok := s.next[p]
		if !ok {
			next = engine.Next(g.Node, after.Settings, g.model)
			s.next[p] = next
		}
		out.done += g.count
		out.was.add(was, g.Settings.Cooldown, g.count)
		out.will.add(will, after.Settings.Cooldown, g.count)
		collect(sums, next, g.count)
	}
	for _, d := range sums {
		out.next = append(out.next, d)
	}
	slices.SortFunc(out.next, func(a, b plannedAction) int {
		return cmp.Or(b.nodes-a.nodes, cmp.Compare(a.kind, b.kind), cmp.Compare(a.what, b.what), cmp.Compare(a.reason, b.reason))
	})
	return out
}

// sharedReason returns the first group's reason, and "" for a later group, whose reason
// differs.
func sharedReason(i int, why string) string {
	if i == 0 {
		return why
	}
	return ""
}

// collect adds the planner's actions on a group of nodes.
func collect(sums map[plannedAction]plannedAction, actions []warmpool.Action, nodes int) {
	seen := map[plannedAction]bool{}
	for _, a := range actions {
		id, count := planned(a)
		d, ok := sums[id]
		if !ok {
			d = id
		}
		if !seen[id] {
			seen[id] = true
			d.nodes += nodes
		}
		d.times += nodes
		d.count += nodes * count
		sums[id] = d
	}
}

// planned returns an action without its node and interface.
func planned(a warmpool.Action) (d plannedAction, count int) {
	const addresses, prefixes = "secondary IP", "prefix"
	d.reason = a.Why()
	switch a := a.(type) {
	case warmpool.AttachENI:
		d.kind, d.what, count = "attach", addresses, a.IPs
		if a.Prefixes > 0 {
			d.what, count = prefixes, a.Prefixes
		}
	case warmpool.AssignAddresses:
		d.kind, d.what, count = "assign", addresses, a.Count
	case warmpool.AssignPrefixes:
		d.kind, d.what, count = "assign", prefixes, a.Count
	case warmpool.UnassignAddresses:
		d.kind, d.what, count = "unassign", addresses, len(a.CIDRs)
	case warmpool.UnassignPrefixes:
		d.kind, d.what, count = "unassign", prefixes, len(a.CIDRs)
	case warmpool.DetachENI:
		d.kind = "detach"
	default:
		d.kind = "wait"
	}
	return d, count
}

// text describes the action in the words of cnictl node plan.
func (d plannedAction) text(all int) string {
	things := func() string {
		many := d.what + "s"
		if d.what == "prefix" {
			many = "prefixes"
		}
		return human.Plural(d.count, d.what, many)
	}
	text := d.kind
	switch d.kind {
	case "attach":
		text += " " + human.Plural(d.times, "ENI", "ENIs") + " with " + things()
	case "detach":
		text += " " + human.Plural(d.times, "ENI", "ENIs")
	case "assign", "unassign":
		text += " " + things()
	}
	if all > 1 {
		text += ", on " + human.Plural(d.nodes, "node", "nodes")
	}
	return text
}
