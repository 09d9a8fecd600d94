package fleetsim

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"cnictl/capacity/maxpods"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/ipam"
	"cnictl/daemon/warmpool"
)

// ourPaths are what a daemon of ours lists, the original's first.
var ourPaths = []string{
	introspect.PathENIs, introspect.PathENIConfigs, introspect.PathNetworkEnv, introspect.PathIPAMEnv, introspect.PathSummary, introspect.PathConfig,
	introspect.PathPlan, introspect.PathFailures, introspect.PathEvents, introspect.PathPod, introspect.PathLogs, introspect.PathSchemas,
}

// serveOurs answers as a daemon of ours.
func (n *node) serveOurs(w http.ResponseWriter, r *http.Request) {
	var doc any
	query := r.URL.Query()
	switch path := r.URL.Path; path {
	case introspect.PathSummary:
		n.look(func(w *world) { doc = w.summary() })
	case introspect.PathENIs:
		n.look(func(w *world) { doc = w.ourENIs() })
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	case introspect.PathENIConfigs, introspect.PathNetworkEnv, introspect.PathIPAMEnv:
		n.serveOriginal(w, r)
		return
	case introspect.PathConfig:
		doc = n.config()
	case introspect.PathPlan:
		q, fault := planQuery(query)
		if fault != nil {
			n.fault(w, http.StatusBadRequest, *fault)
			return
		}
		n.look(func(w *world) { doc = w.planned(q) })
	case introspect.PathFailures:
		n.look(func(w *world) { doc = w.failed() })
	case introspect.PathEvents:
		var fault *introspect.Fault
		if doc, fault = n.eventsAfter(r); fault != nil {
			n.fault(w, http.StatusBadRequest, *fault)
			return
		}
	case introspect.PathPod:
		var found bool
		if doc, found = n.podDocument(query.Get("namespace"), query.Get("name")); !found {
			n.fault(w, http.StatusNotFound, introspect.Fault{Code: introspect.FaultNotFound, Message: "the node has given no address to that pod"})
			return
		}
	case introspect.PathLogs:
		doc = n.logs(query)
	case introspect.PathSchemas:
		doc = introspect.Schemas()
	default:
		if kind, ok := strings.CutPrefix(path, introspect.PathSchemas+"/"); ok {
			if schema, known := introspect.Schema(kind); known {
				doc = schema
				break
			}
		}
		doc = introspect.Commands{AvailableCommands: ourPaths}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	}
	n.write(w, r, doc)
}

func (n *node) fault(w http.ResponseWriter, status int, f introspect.Fault) {
	f.APIVersion, f.Kind = introspect.APIVersion, introspect.KindFault
	w.Header().Set("Content-Type", contentJSON)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(f)
}

// write answers a document with its ETag, compressed where that is accepted.
func (n *node) write(w http.ResponseWriter, r *http.Request, doc any) {
	body, err := json.Marshal(doc)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h := fnv.New64a()
	_, _ = h.Write(body) // a hash takes everything
	tag := fmt.Sprintf(`"%x"`, h.Sum64())
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", contentJSON)
	}
	if len(body) > 1024 && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is one that there is
		_, _ = z.Write(body)
		_ = z.Close()
		return
	}
	_, _ = w.Write(body)
}

func (w *world) callList() []introspect.EC2Calls {
	out := []introspect.EC2Calls{}
	for _, action := range slices.Sorted(maps.Keys(w.calls)) {
		out = append(out, *w.calls[action])
	}
	return out
}

// summary is /v1/summary.
func (w *world) summary() introspect.Summary {
	n, p := w.node, w.node.profile
	no, started := false, n.started.UTC()
	seconds := cooldown.Seconds()
	custom, cordoned := p.policy.CustomNetworking, n.cordoned
	s := introspect.Summary{
		APIVersion: introspect.APIVersion, Kind: introspect.KindSummary, Version: n.said(daemonVersion), Node: n.said(n.name),
		InstanceID: n.instanceID, InstanceType: n.said(p.instance), IPFamily: "ipv4", StartedAt: &started,
		CustomNetworking: &custom, Cordoned: &cordoned, Terminating: &no, CooldownSeconds: &seconds,
		Targets: w.targets(p.policy), Operations: []introspect.Operation{}, Backoffs: []introspect.Backoff{}, LastErrors: []introspect.LastError{},
	}
	if p.policy.IPv6 {
		s.IPFamily = "ipv6"
	}
	w.pools(&s)
	w.clocks(&s)
	in := maxpods.Input{
		InstanceType: p.instance, MaxPods: p.maxPods, PrefixDelegation: p.policy.PrefixDelegation, CustomNetworking: custom,
		PodENI: p.podENI, MultiNIC: p.policy.MultiNIC, IPv6: p.policy.IPv6, TrunkAttached: p.podENI,
	}
	r := maxpods.Compute(in)
	s.MaxPods = &introspect.MaxPods{
		Value: &in.MaxPods, Source: "node", Verdict: strings.ToLower(string(r.Verdict)), IPCapacity: &r.IPCapacity, TotalCapacity: &r.TotalCapacity, Recommended: &r.Recommended,
	}
	for _, t := range r.Terms() {
		s.MaxPods.Terms = append(s.MaxPods.Terms, introspect.MaxPodsTerm{Name: t.Name, Value: t.Value})
	}
	supported, limit := p.limits.BranchENIs > 0, p.limits.BranchENIs
	s.Trunk = &introspect.Trunk{Enabled: p.podENI, Supported: &supported, BranchLimit: &limit}
	if p.podENI {
		used := w.branches
		s.Trunk.BranchUsed = &used
		for _, e := range w.book.Snapshot().ENIs {
			if e.Trunk {
				s.Trunk.ENIID = n.said(string(e.ID))
			}
		}
	}
	waiting, unplaced, problems := 0, 0, 0
	for _, pod := range w.pods {
		if pod.waits.IsZero() {
			continue
		}
		waiting++
		if at := pod.waits.UTC(); s.WaitingSince == nil || at.Before(*s.WaitingSince) {
			s.WaitingSince = &at
		}
	}
	s.WaitingADDs, s.Unplaced, s.ConfigProblems = &waiting, &unplaced, &problems
	available, asOf := n.sim.available(n.index, w.now.Truncate(time.Minute)), w.now.UTC().Truncate(time.Minute)
	s.Subnets = []introspect.Subnet{{ID: n.subnet, CIDR: n.prefix.String(), Available: &available, AsOf: &asOf}}
	for _, e := range slices.Backward(w.errors) {
		e.Message = n.said(e.Message)
		s.LastErrors = append(s.LastErrors, e)
	}
	slices.SortStableFunc(s.LastErrors, func(a, b introspect.LastError) int { return b.At.Compare(a.At) })
	s.EC2Calls = w.callList()
	adds, dels := w.adds, w.dels
	adds.Causes, dels.Causes = maps.Clone(adds.Causes), maps.Clone(dels.Causes)
	s.ADDs, s.DELs = &adds, &dels
	return s
}

func (w *world) targets(p warmpool.Policy) introspect.Targets {
	return introspect.Targets{WarmENI: &p.WarmENI, WarmIP: &p.WarmIP, MinimumIP: &p.MinIP, WarmPrefix: &p.WarmPrefix, MaxENI: &p.MaxENI}
}

// pools fills in cards and ENIs.
func (w *world) pools(s *introspect.Summary) {
	snap, in := w.book.Snapshot(), w.snapshot()
	kind, _ := w.kind()
	mode := introspect.ModeSecondaryIP
	if kind == ipam.Prefixes {
		mode = introspect.ModePrefix
	}
	for card, limit := range in.Limits.ENIsByCard {
		t := snap.Totals(card, kind, w.now, cooldown)
		slots, none := in.Limits.IPv4PerENI-1, 0
		if w.node.profile.policy.IPv6 {
			slots = 1
		}
		addresses := limit * slots
		if kind == ipam.Prefixes {
			addresses *= 16
		}
		if w.node.profile.policy.IPv6 {
			addresses = introspect.MaxPodsUnlimited
		}
		c := introspect.CardSummary{
			Card: card, Mode: mode, OtherENIs: &none, ENILimit: &limit, SlotsPerENI: &slots, AddressLimit: &addresses,
			Total: t.Total, Assigned: t.Assigned, Cooling: t.Cooling, Free: t.Free, Prefixes: t.Prefixes, FreePrefixes: t.FreePrefixes,
		}
		if w.node.has(Lying) {
			c.Total, c.Free = c.Total+7, c.Free+7
		}
		for i := range snap.ENIs {
			if snap.ENIs[i].Card == card {
				c.ENIs++
			}
		}
		s.Cards = append(s.Cards, c)
	}
	s.ENIs = []introspect.ENISummary{}
	for i := range snap.ENIs {
		e := &snap.ENIs[i]
		out := introspect.ENISummary{ID: w.node.said(string(e.ID)), Card: e.Card, Device: e.Device, SubnetID: e.SubnetID, Flags: []string{}}
		for _, f := range []struct {
			set  bool
			flag string
		}{{e.Primary, introspect.ENIFlagPrimary}, {e.Trunk, introspect.ENIFlagTrunk}, {e.Excluded, introspect.ENIFlagExcluded}, {e.Held, introspect.ENIFlagHeld}} {
			if f.set {
				out.Flags = append(out.Flags, f.flag)
			}
		}
		for j := range e.CIDRs {
			if c := &e.CIDRs[j]; !c.Held && c.IsPrefix() == (kind == ipam.Prefixes) {
				cooling := c.Cooling(w.now, cooldown)
				out.Total, out.Assigned, out.Cooling = out.Total+size(c.Prefix), out.Assigned+c.Assigned, out.Cooling+cooling
			}
		}
		out.Free = out.Total - out.Assigned - out.Cooling
		s.ENIs = append(s.ENIs, out)
	}
}

func size(p netip.Prefix) int { return 1 << (p.Addr().BitLen() - p.Bits()) }

// clocks fills in what is in flight and what is held back.
func (w *world) clocks(s *introspect.Summary) {
	kinds := map[warmpool.PendingKind]string{
		warmpool.PendingAttach: "attach", warmpool.PendingAssign: "assign", warmpool.PendingRelease: "release", warmpool.PendingDetach: "detach",
	}
	for i := range w.ops {
		op := &w.ops[i]
		begun := op.begun.UTC()
		s.Operations = append(s.Operations, introspect.Operation{
			Kind: kinds[op.pending.Kind], ENIID: string(op.pending.ENI), Card: op.pending.Card, Addresses: op.pending.IPs, Prefixes: op.pending.Prefixes,
			Reason: string(op.action.Why()), StartedAt: &begun,
		})
	}
	hold := func(scope, id string, until time.Time) {
		if until.After(w.now) {
			s.Backoffs = append(s.Backoffs, introspect.Backoff{Scope: scope, ID: id, Until: until.UTC(), Cause: string(w.cause)})
		}
	}
	hold("attach", "", w.attach)
	for _, id := range slices.Sorted(maps.Keys(w.backoff)) {
		hold("eni", string(id), w.backoff[id])
	}
	hold("subnet", w.node.subnet, w.subnet)
}

// ourENIs is /v1/enis as ours answers it.
func (w *world) ourENIs() introspect.ENIs {
	doc := introspect.ENIs{"0": {ENIs: map[string]introspect.ENI{}}}
	snap := w.book.Snapshot()
	for i := range snap.ENIs {
		e := &snap.ENIs[i]
		if e.Held {
			continue
		}
		key := strconv.Itoa(e.Card)
		card := doc[key]
		if card.ENIs == nil {
			card.ENIs = map[string]introspect.ENI{}
		}
		out := introspect.ENI{
			ID: string(e.ID), IsPrimary: e.Primary, IsTrunk: e.Trunk, IsEFA: e.EFA, DeviceNumber: e.Device,
			AvailableIPv4Cidrs: map[string]introspect.CIDR{}, IPv6Cidrs: map[string]introspect.CIDR{},
			IsExcludedForPodIPs: e.Excluded, RouteTableID: e.RouteTable, SubnetID: e.SubnetID,
		}
		for j := range e.CIDRs {
			c := &e.CIDRs[j]
			if c.Held {
				continue
			}
			card.TotalIPs += size(c.Prefix)
			card.AssignedIPs += c.Assigned
			told := introspect.CIDR{
				Cidr:        introspect.IPNet{IP: c.Prefix.Addr().String(), Mask: net.CIDRMask(c.Prefix.Bits(), c.Prefix.Addr().BitLen())},
				IPAddresses: map[string]introspect.Address{}, IsPrefix: c.IsPrefix(),
			}
			for _, r := range c.Records {
				a := introspect.Address{Address: r.Address.String(), AssignedTime: r.AssignedAt.UTC(), UnassignedTime: r.UnassignedAt.UTC()}
				if r.Assigned() {
					a.IPAMKey.NetworkName = r.Sandbox.Network
					a.IPAMMetadata = introspect.IPAMMetadata{PodNamespace: r.Pod.Namespace, PodName: w.node.said(r.Pod.Name), Interfaces: 1}
				}
				told.IPAddresses[a.Address] = a
			}
			cidrs := out.AvailableIPv4Cidrs
			if !c.Prefix.Addr().Is4() {
				cidrs = out.IPv6Cidrs
			}
			cidrs[c.Prefix.String()] = told
		}
		if w.node.has(Lying) {
			card.TotalIPs, card.AssignedIPs = card.TotalIPs+3, -1
		}
		card.ENIs[out.ID] = out
		doc[key] = card
	}
	return doc
}

// config is /v1/config: the settings that make the profile.
func (n *node) config() introspect.NodeConfig {
	p := n.profile.policy
	doc := introspect.NodeConfig{APIVersion: introspect.APIVersion, Kind: introspect.KindConfig}
	for _, row := range []struct {
		name, value string
		standard    bool
	}{
		{"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", boolWord(p.CustomNetworking), !p.CustomNetworking},
		{"ENABLE_POD_ENI", boolWord(n.profile.podENI), !n.profile.podENI},
		{"ENABLE_PREFIX_DELEGATION", boolWord(p.PrefixDelegation), !p.PrefixDelegation},
		{"MINIMUM_IP_TARGET", strconv.Itoa(p.MinIP), p.MinIP == 0},
		{"WARM_ENI_TARGET", strconv.Itoa(p.WarmENI), p.WarmENI == 1},
		{"WARM_IP_TARGET", strconv.Itoa(p.WarmIP), p.WarmIP == 0},
		{"WARM_PREFIX_TARGET", strconv.Itoa(p.WarmPrefix), p.WarmPrefix == 0},
	} {
		out := introspect.ConfigRow{Name: row.name, Effective: row.value, Source: "default", Support: introspect.SupportActs}
		if !row.standard {
			declared := n.said(row.value)
			out.Declared, out.Source = &declared, "environment"
		}
		doc.Items = append(doc.Items, out)
	}
	return doc
}

func badParameter(format string, args ...any) *introspect.Fault {
	return &introspect.Fault{Code: introspect.FaultBadParameter, Message: fmt.Sprintf(format, args...)}
}

func planQuery(values url.Values) (introspect.PlanQuery, *introspect.Fault) {
	var q introspect.PlanQuery
	known := map[string]**int{}
	for _, p := range q.Parameters() {
		known[p.Name] = p.Value
	}
	for name := range values {
		into, ok := known[name]
		v, err := strconv.Atoi(values.Get(name))
		if !ok || err != nil || v < 0 || v > introspect.MaxTarget {
			return q, badParameter("parameter %.60q with %.60q: want a target of the pool and a number", name, values.Get(name))
		}
		*into = &v
	}
	return q, nil
}

// planned is /v1/plan.
func (w *world) planned(q introspect.PlanQuery) introspect.NodePlan {
	policy := w.node.profile.policy
	was := policy
	for asked, of := range map[*int]*int{
		q.WarmENI: &policy.WarmENI, q.WarmIP: &policy.WarmIP, q.MinimumIP: &policy.MinIP, q.WarmPrefix: &policy.WarmPrefix, q.MaxENI: &policy.MaxENI, q.MaxPods: &policy.MaxPods,
	} {
		if asked != nil {
			*of = *asked
		}
	}
	in := w.snapshot()
	doc := introspect.NodePlan{
		APIVersion: introspect.APIVersion, Kind: introspect.KindPlan, WhatIf: was != policy, Targets: w.targets(policy), MaxPods: policy.MaxPods,
		Actions: []introspect.PlannedAction{}, Blocked: []introspect.BlockedCard{}, Unmet: []introspect.UnmetTarget{},
	}
	for _, a := range warmpool.Plan(in, policy, w.now) {
		out := introspect.PlannedAction{CIDRs: []netip.Prefix{}, Reason: string(a.Why()), Title: a.Why().Title(), Text: fmt.Sprint(a)}
		on := func(kind string, id ipam.ENIID) {
			out.Kind, out.ENIID = kind, string(id)
			for i := range in.Book.ENIs {
				if e := &in.Book.ENIs[i]; e.ID == id {
					card, device := e.Card, e.Device
					out.Card, out.Device, out.SubnetID = &card, &device, e.SubnetID
				}
			}
		}
		switch a := a.(type) {
		case warmpool.AttachENI:
			out.Kind, out.Card, out.Device, out.SubnetID = introspect.ActionAttachENI, &a.Card, &a.Device, a.SubnetID
			out.Count, out.Prefixes = cmp.Or(a.Prefixes, a.IPs), a.Prefixes > 0
		case warmpool.AssignAddresses:
			on(introspect.ActionAssignAddresses, a.ENI)
			out.Count = a.Count
		case warmpool.AssignPrefixes:
			on(introspect.ActionAssignPrefixes, a.ENI)
			out.Count, out.Prefixes = a.Count, true
		case warmpool.UnassignAddresses:
			on(introspect.ActionUnassignAddresses, a.ENI)
			out.Count, out.CIDRs = len(a.CIDRs), a.CIDRs
		case warmpool.UnassignPrefixes:
			on(introspect.ActionUnassignPrefixes, a.ENI)
			out.Count, out.CIDRs, out.Prefixes = len(a.CIDRs), a.CIDRs, true
		case warmpool.DetachENI:
			on(introspect.ActionDetachENI, a.ENI)
		case warmpool.Wait:
			until := a.Until.UTC()
			out.Kind, out.Until = introspect.ActionWait, &until
		}
		doc.Actions = append(doc.Actions, out)
	}
	for card := range in.Limits.ENIsByCard {
		if code, message, blocked := warmpool.Blocked(in, policy, w.now, card); blocked {
			doc.Blocked = append(doc.Blocked, introspect.BlockedCard{Card: card, Cause: string(code), Message: w.node.said(message)})
		}
	}
	return doc
}

// failed is /v1/failures.
func (w *world) failed() introspect.NodeFailures {
	doc := introspect.NodeFailures{APIVersion: introspect.APIVersion, Kind: introspect.KindFailures, Items: []introspect.Failure{}}
	for _, f := range slices.Backward(w.failures) {
		f.At, f.Pod, f.Detail = f.At.UTC(), w.told(f.Pod), w.node.said(f.Detail)
		doc.Items = append(doc.Items, f)
	}
	return doc
}

// eventsAfter is /v1/events: what happened since, or what happens within the wait.
func (n *node) eventsAfter(r *http.Request) (introspect.NodeEvents, *introspect.Fault) {
	values := r.URL.Query()
	var since *uint64
	if text := values.Get("since"); text != "" {
		v, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return introspect.NodeEvents{}, badParameter("since is %.60q: want a number", text)
		}
		since = &v
	}
	patience := 0
	if text := values.Get("wait"); text != "" {
		v, err := strconv.Atoi(strings.TrimSuffix(text, "s"))
		if err != nil || v < 0 || v > introspect.MaxEventWait {
			return introspect.NodeEvents{}, badParameter("wait is %.60q: want 0 to %d seconds", text, introspect.MaxEventWait)
		}
		patience = v
	}
	end := time.Now().Add(time.Duration(patience) * time.Second)
	for {
		var doc introspect.NodeEvents
		n.look(func(w *world) { doc = w.eventsSince(since, values.Get("epoch")) })
		// When the next event comes is known only once it is there: look now and then.
		if len(doc.Items) > 0 || !time.Now().Before(end) || !wait(r.Context(), 250*time.Millisecond) {
			return doc, nil
		}
	}
}

func (w *world) eventsSince(since *uint64, epoch string) introspect.NodeEvents {
	turns, _ := w.node.flap(w.now)
	own := strconv.FormatInt(w.node.started.UnixNano()+int64(turns), 36)
	doc := introspect.NodeEvents{APIVersion: introspect.APIVersion, Kind: introspect.KindEvents, Epoch: own, Next: w.seq, Items: []introspect.Event{}}
	after, gap := uint64(0), ""
	if since != nil {
		after = *since
	}
	first := w.events[0].Seq
	switch {
	case epoch != "" && epoch != own, after > w.seq:
		after, gap = 0, introspect.GapRestart
	case since != nil && after+1 < first:
		gap = introspect.GapOverflow
	}
	if gap != "" {
		e := introspect.Event{Seq: first - 1, At: w.events[0].At.UTC(), Kind: introspect.EventGap, Reason: gap}
		if gap == introspect.GapOverflow {
			missed := first - 1 - after
			e.Missed = &missed
		}
		doc.Items = append(doc.Items, e)
	}
	for _, e := range w.events {
		if e.Seq <= after {
			continue
		}
		e.At, e.Message = e.At.UTC(), w.node.said(e.Message)
		if e.Pod != nil {
			pod := w.told(*e.Pod)
			e.Pod = &pod
		}
		doc.Items = append(doc.Items, e)
	}
	return doc
}

// podDocument is /v1/pod. What the kernel has is as it should be.
func (n *node) podDocument(namespace, name string) (doc introspect.NodePod, found bool) {
	doc = introspect.NodePod{APIVersion: introspect.APIVersion, Kind: introspect.KindPod, Pod: introspect.PodRef{Namespace: namespace, Name: name}, Interfaces: []introspect.PodInterface{}}
	n.look(func(w *world) {
		for a := range w.book.Assignments() {
			if a.Pod.Namespace != namespace || w.node.said(a.Pod.Name) != name {
				continue
			}
			found = true
			at := a.AssignedAt.UTC()
			link := "eni" + suffix(n.sim.hash(n.index, a.Sandbox.ContainerID), 11)
			subnet := ""
			for _, e := range w.book.Snapshot().ENIs {
				if e.ID == a.ENI {
					subnet = e.SubnetID
				}
			}
			host := netip.PrefixFrom(a.Address, a.Address.BitLen())
			doc.Interfaces = append(doc.Interfaces, introspect.PodInterface{
				Address: a.Address, ENIID: string(a.ENI), Card: &a.Card, Device: &a.Device, SubnetID: subnet, RouteTable: &a.RouteTable, AssignedAt: &at, HostLink: link,
				Observed: &introspect.PodKernel{
					Link:       &introspect.PodLink{Name: link, Index: 7, Kind: "veth", MAC: "0e:00:00:00:00:07", MTU: 9001, Up: true, Running: true},
					Rules:      []introspect.PodRule{{Priority: 512, To: host, Table: 254}},
					Routes:     []introspect.PodRoute{{Table: 254, To: host, Link: link}},
					Tables:     []introspect.PodRoute{},
					Neighbours: []introspect.PodNeighbour{},
				},
				Differences: []string{},
			})
		}
	})
	return doc, found
}

// logs is /v1/logs.
func (n *node) logs(values url.Values) introspect.NodeLogs {
	most := introspect.DefaultLogLines
	if v, err := strconv.Atoi(values.Get("lines")); err == nil && v > 0 {
		most = min(v, introspect.MaxLogLines)
	}
	doc := introspect.NodeLogs{APIVersion: introspect.APIVersion, Kind: introspect.KindLogs, Path: "/var/log/aws-routed-eni/ipamd.log", Lines: []string{}}
	since, _ := time.Parse(time.RFC3339Nano, values.Get("since")) // none: all
	for _, line := range n.logLines() {
		level := values.Get("level")
		if line.at.Before(since) || (line.level == "info" && (level == "warn" || level == "error")) || (level == "error") || !strings.Contains(line.text, values.Get("match")) {
			continue
		}
		doc.Lines = append(doc.Lines, line.text)
	}
	if len(doc.Lines) > most {
		doc.Lines, doc.Truncated = doc.Lines[len(doc.Lines)-most:], true
	}
	return doc
}
