package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/capacity/limits"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/cmd/internal/frame"
	"cnictl/testenv/node"
)

// Upstream's figures are in docs/performance.md, our targets are ratios to them.
const (
	upstreamMemory = 68 // MB, the daemon with 100 pods
	instanceType   = "m5.4xlarge"
	maxPods        = 234 // of the kubelet in upstream's measurements
)

func (r *run) fresh(kind string, o fakeaws.Options) (*site, *node.Node) {
	r.sites++
	s := r.site(o)
	return s, s.boot(kind, fmt.Sprintf("bench-%d", r.sites), r.bin, false)
}

// start measures, on fresh nodes, the time from the start of the daemon until it serves. As
// with upstream, a kube-apiserver answers.
func (r *run) start() {
	realistic := latencies(fakeaws.RealisticLatency())
	rows := []*row{r.add("start → serving, latency 0", "ms"), r.add("start → serving, realistic", "ms").against(1150, 0.7, 0.4)}
	rows[0].against(300, 0.5, 0.2)
	rows[1].bound = realistic.bound(1e3, ": only EC2 knows which ENIs are attached; the subnets are asked for beside it", describeENIs)
	for i, l := range []latencies{nil, realistic} {
		for range r.part(7) {
			check(r.scope(func() {
				_, n := r.fresh(instanceType, fakeaws.Options{Latency: l})
				rows[i].samples = append(rows[i].samples, milliseconds(r.serve(n, r.join(n, maxPods))))
			}))
		}
	}
}

type scenario struct {
	name             string
	pods             int
	latency          latencies
	prefixes         bool
	shown            bool          // the API server shows each pod when it is bound to the node, before the runtime starts it
	late             time.Duration // a device appears so long after its attach
	fault            fakeaws.FaultFunc
	upstream, failed float64 // upstream's seconds and failed ADDs
	must, aim        float64 // ratios to its seconds
}

func (r *run) scale() {
	realistic := fakeaws.RealisticLatency()
	r.grow(scenario{name: "150 pods, latency 0", upstream: 22.9, failed: 330, must: 0.2, aim: 0.06})
	r.grow(scenario{name: "150 pods, realistic", latency: realistic, upstream: 34.4, failed: 520, must: 0.3, aim: 0.1})
	r.grow(scenario{name: "150 pods, prefixes, latency 0", prefixes: true, upstream: unknown, failed: unknown})
	r.grow(scenario{name: "150 pods, prefixes, realistic", prefixes: true, latency: realistic,
		upstream: 47, failed: 760, must: 0.15, aim: 0.05})
}

func (r *run) bound() {
	realistic := fakeaws.RealisticLatency()
	r.grow(scenario{name: "150 pods, bound beforehand, realistic", shown: true, latency: realistic,
		upstream: 34.4, failed: 520, must: 0.3, aim: 0.1})
}

func (r *run) grow(v scenario) {
	v.pods = 150
	took, more := r.repeat(v)
	took.against(v.upstream, v.must, v.aim).bound = v.bound()
	more("failed ADDs").atMost(0).beside(v.failed)
	calls := more("EC2 calls")
	calls.bound = v.callBound()
	if !v.prefixes {
		calls.against(35, 0.7, 0.55)
	}
	if !v.shown {
		more("metadata requests per ADD").askedSeldom()
	}
}

// askedSeldom limits requests per ADD. An ADD makes none, but the limit is not 0: the daemon
// reads its ENIs soon after the start and once a minute, with about ten requests to the
// metadata service per ENI, and that may coincide with the ADDs.
func (r *row) askedSeldom() { r.aim, r.must = 0.1, 0.5 }

// faults measures an exhausted subnet and throttled attachments. The aims are figures that are
// considered possible, which are not required.
func (r *run) faults() {
	realistic, late := latencies(fakeaws.RealisticLatency()), 2*time.Second
	full := fakeaws.Fault{Code: "InsufficientFreeAddressesInSubnet", Message: "insufficient free addresses"}
	r.faulty(scenario{name: "40 pods, subnet exhausted once", latency: realistic, upstream: 123.5,
		fault: fakeaws.FailCalls(createENI, 1, 1, full)}, 4,
		realistic.bound(1, ": the refused call and the same again, without a pause", createENI, createENI, attachENI))
	throttled := fakeaws.FailCalls(attachENI, 1, 3, fakeaws.Throttled)
	r.faulty(scenario{name: "40 pods, attach throttled 3 times", late: late, upstream: 17, fault: throttled}, 8,
		bound{late.Seconds(), fmt.Sprintf("the device appears %v after the attach; no pause between the tries, nothing asked of metadata", late)})
}

func (r *run) faulty(v scenario, aim float64, b bound) {
	v.pods = 40
	took, more := r.repeat(v)
	took.beside(v.upstream).aimAt(aim).bound = b
	more("failed ADDs").atMost(0)
	more("ENIs given up").atMost(0)
}

type outcome struct {
	failed []error // ADDs
	took   time.Duration
	begin  time.Time      // first ADD
	calls  []fakeaws.Call // from the start of the daemon until all pods run
	imds   []string       // paths of the metadata requests during the ADDs
}

// repeat runs a scenario several times and returns the row of its time and what adds another figure's.
func (r *run) repeat(v scenario) (took *row, more func(what string) *row) {
	took = r.add(v.name, "s")
	var all []outcome
	others := map[string][]float64{}
	for range r.part(r.runs) {
		check(r.scope(func() { all = append(all, r.once(v)) }))
		o := all[len(all)-1]
		r.say("  %s: %.2f s, %d EC2 calls, failed ADDs: %v", v.name, o.took.Seconds(), len(o.calls), o.failed)
		took.samples = append(took.samples, o.took.Seconds())
		for what, n := range map[string]float64{
			"failed ADDs": float64(len(o.failed)), "metadata requests per ADD": float64(len(o.imds)) / float64(v.pods),
			"EC2 calls": float64(len(o.calls)), "ENIs given up": float64(byAction(o.calls)["DeleteNetworkInterface"]),
		} {
			others[what] = append(others[what], n)
		}
	}
	m := slices.SortedFunc(slices.Values(all), func(a, b outcome) int { return int(a.took - b.took) })[len(all)/2]
	r.note("%s: %s.", v.name, strings.Trim(fmt.Sprint(byAction(m.calls)), "map[]"))
	if r.calls {
		r.note("EC2 requests, from the first ADD (all pods run at %+.3f s):\n%s\nMetadata requests: %s.",
			m.took.Seconds(), timeline(m.calls, m.begin), strings.Join(m.imds, ", "))
	}
	return took, func(what string) *row { return r.add(v.name+": "+what, "", others[what]...) }
}

func byAction(calls []fakeaws.Call) map[string]int {
	counts := map[string]int{}
	for _, c := range calls {
		counts[c.Action]++
	}
	return counts
}

func timeline(calls []fakeaws.Call, since time.Time) string {
	var b strings.Builder
	for _, c := range slices.SortedFunc(slices.Values(calls), func(x, y fakeaws.Call) int { return x.Start.Compare(y.Start) }) {
		fmt.Fprintf(&b, "  %+7.3f s  %5.3f s  %s %s %s\n", c.Start.Sub(since).Seconds(), c.Took.Seconds(), c.Action,
			c.Params["SecondaryPrivateIpAddressCount"]+c.Params["Ipv4PrefixCount"]+c.Params["DeviceIndex"], c.Code)
	}
	return b.String()
}

func (r *run) once(v scenario) outcome {
	s, n := r.fresh(instanceType, fakeaws.Options{Latency: v.latency, AttachDelay: v.late, MetadataLag: v.late / 2})
	s.world.SetFaults(v.fault)
	env := map[string]string{}
	if v.shown {
		env = r.join(n, maxPods)
	}
	if v.prefixes {
		env["ENABLE_PREFIX_DELEGATION"] = "true"
	}
	r.serve(n, env)
	before := len(s.world.IMDSCalls())
	names, bound := queued(v.pods), func() error { return nil }
	if v.shown {
		names, bound = r.bind(n, v.pods)
	}
	o := r.launch(n, names)
	check(bound())
	o.calls = s.world.Calls()
	for _, c := range s.world.IMDSCalls()[before:] {
		o.imds = append(o.imds, c.Path)
	}
	return o
}

// bind binds pods in the API server as fast as it accepts them, and returns their names as soon as
// each is bound.
func (r *run) bind(n *node.Node, pods int) (_ <-chan string, wait func() error) {
	names, ended := make(chan string, pods), make(chan error, 1)
	go func() {
		ended <- frame.Each(r.ctx, pods, 16, func(i int) {
			name := n.Name + "-" + podName(i) // all nodes' pods are in one namespace
			r.newPod(name, n.Name)
			names <- name
		})
		close(names)
	}()
	return names, func() error { return <-ended }
}

// launch starts pods as a kubelet and its runtime do, until the channel of their names is closed.
func (r *run) launch(n *node.Node, names <-chan string) (out outcome) {
	const width = 20  // ADDs in parallel
	var mu sync.Mutex // guards out.failed
	out.begin = time.Now()
	check(frame.Each(r.ctx, width, width, func(int) {
		for name := range names {
			for tries := 1; ; tries++ {
				check(r.ctx.Err())
				_, err := n.AddPod(node.PodSpec{Namespace: "default", Name: name})
				if err == nil {
					break
				}
				if refused := (*node.PluginError)(nil); !errors.As(err, &refused) || tries == 60 {
					check(fmt.Errorf("pod %s, try %d: %w", name, tries, err))
				}
				mu.Lock()
				out.failed = append(out.failed, err)
				mu.Unlock()
				r.pause(time.Second) // after a failed sandbox kubelet creates a new one, a second or more later
			}
		}
	}))
	out.took = time.Since(out.begin)
	return out
}

func podName(i int) string { return fmt.Sprintf("pod-%d", i) }

func queued(n int) <-chan string {
	names := make(chan string, n)
	for i := range n {
		names <- podName(i)
	}
	close(names)
	return names
}

// paced returns the names of n pods, one per period.
func (r *run) paced(n int, every time.Duration) <-chan string {
	names := make(chan string, n)
	go func() { // ends after n periods or with the run
		defer close(names)
		_ = frame.Attempt(func() {
			for i, begin := 1, time.Now(); i <= n; i++ {
				r.pause(time.Until(begin.Add(time.Duration(i) * every)))
				names <- "paced-" + podName(i)
			}
		})
	}()
	return names
}

// load measures the daemon's memory and CPU: at rest, with pods, under a steady stream
// of pods, and in a big cluster.
func (r *run) load() {
	s, n := r.fresh(instanceType, fakeaws.Options{})
	env := r.join(n, maxPods)
	const pool = 220 // enough for ten pods a second, so that ADD is measured and not growth
	r.serve(n, env, map[string]string{"MINIMUM_IP_TARGET": fmt.Sprint(pool), "WARM_IP_TARGET": "1"})
	s.warm(n, pool)
	r.during(n, "at rest, no pods", r.quiet)
	r.launch(n, queued(100))
	r.during(n, "at rest, 100 pods", r.quiet).other = upstreamMemory
	const perSecond = 10
	pods := perSecond * int(r.lasting(10*time.Second).Seconds()) // at most as many as the node has addresses for
	ec2, imds := len(s.world.Calls()), len(s.world.IMDSCalls())
	var out outcome
	r.during(n, "10 ADD/s", func() { out = r.launch(n, r.paced(pods, time.Second/perSecond)) })
	r.add("10 ADD/s: failed ADDs", "", float64(len(out.failed))).atMost(0)
	r.add("10 ADD/s: EC2 requests per ADD", "", float64(len(s.world.Calls())-ec2)/float64(pods)).askedSeldom()
	r.add("10 ADD/s: metadata requests per ADD", "", float64(len(s.world.IMDSCalls())-imds)/float64(pods)).askedSeldom()
	// Other nodes and their pods must not affect the daemon, even when it restarts.
	var others, elsewhere int
	r.during(n, "while a big cluster is made", func() { others, elsewhere = r.fill() })
	big := fmt.Sprintf("%d nodes, %d pods elsewhere", others, elsewhere)
	r.during(n, "at rest, "+big, r.quiet)
	must(n.StopDaemon(r.ctx, unix.SIGTERM))
	r.add("start → serving, "+big, "ms", milliseconds(r.serve(n, env)))
	r.during(n, "started anew, "+big, r.quiet)
}

// quiet is long enough to include the daemon's periodic work, which takes only milliseconds.
func (r *run) quiet() { r.pause(r.lasting(20 * time.Second)) }

// during measures what the daemon uses while do runs, and returns the row of its memory. Upstream's
// figure is for 100 pods; our target applies to any load.
func (r *run) during(n *node.Node, what string, do func()) *row {
	const megabyte = 1 << 20 // as in upstream's figures, which are from ps
	pid := serverOf(n, node.LeanSocket)
	before, begin := frame.CPU(pid), time.Now()
	do()
	used, took := frame.CPU(pid)-before, time.Since(begin)
	row := r.add("daemon memory, "+what, "MB", must(frame.Memory(pid, "VmRSS"))/megabyte).against(upstreamMemory, 0.7, 0.5).beside(unknown)
	r.add("of it anonymous, "+what, "MB", must(frame.Memory(pid, "RssAnon"))/megabyte)
	r.add("daemon CPU, "+what, "ms/s", milliseconds(used)/took.Seconds())
	return row
}

// restore measures the start of a daemon whose checkpoint has 700 pods. All of them exist:
// the plugin has added each, with its namespace, veth pair, route and rule, so the daemon
// finds every link.
func (r *run) restore() {
	_, n := r.fresh("m5.24xlarge", fakeaws.Options{}) // 15 ENIs of 49 addresses each
	pods, env := r.part(700), r.join(n, 737)
	r.serve(n, env)
	r.launch(n, queued(pods))
	row := r.add(fmt.Sprintf("start → serving, checkpoint of %d pods", pods), "ms")
	for range r.part(5) {
		must(n.StopDaemon(r.ctx, unix.SIGTERM)) // as a rollout does
		row.samples = append(row.samples, milliseconds(r.serve(n, env)))
		if kept := must(n.Allocations()); len(kept) != pods {
			check(fmt.Errorf("after a restart the checkpoint has %d of %d pods", len(kept), pods))
		}
	}
	r.during(n, fmt.Sprintf("%d pods restored", pods), r.quiet)
}

type latencies map[string]time.Duration // of EC2's actions

const (
	createENI    = "CreateNetworkInterface"
	attachENI    = "AttachNetworkInterface"
	assignIPs    = "AssignPrivateIpAddresses"
	describeENIs = "DescribeNetworkInterfaces"
)

// bound is the total time of calls that depend on each other, in a unit that a second has perSecond of.
func (l latencies) bound(perSecond float64, why string, actions ...string) bound {
	var total time.Duration
	var parts []string
	for _, a := range actions {
		total += l[a]
		parts = append(parts, fmt.Sprintf("%s %v", a, l[a]))
	}
	return bound{total.Seconds() * perSecond, strings.Join(parts, " + ") + why}
}

// newENIs are those that the pods need besides the primary one.
func (v scenario) newENIs() int {
	of, _ := limits.Lookup(instanceType)
	perENI := of.IPv4PerENI - 1
	if v.prefixes {
		perENI *= 16
	}
	return max(0, (v.pods-1)/perENI)
}

// bound returns the minimum time from the first ADD until all pods run, if all pods were known at once.
func (v scenario) bound() bound {
	n := v.newENIs()
	if n == 0 {
		return v.latency.bound(1, fmt.Sprintf(": %d pods fit on the primary ENI, and one call can ask for all", v.pods), assignIPs)
	}
	serial := v.latency[createENI] + time.Duration(n)*v.latency[attachENI]
	return v.latency.bound(1, fmt.Sprintf(": %d pods need %d more ENIs, made side by side, filled when created, beside the primary's; "+
		"no pod waits for the modification. If EC2 attached one at a time: %v", v.pods, n, serial), createENI, attachENI)
}

// callBound returns the minimum number of calls from the daemon's start until all pods run.
func (v scenario) callBound() bound {
	const atStart, perENI = 3, 3
	n := atStart + 1 + perENI*v.newENIs()
	why := fmt.Sprintf("%d at start (ENIs, subnets, tags of the primary ENI), 1 for the addresses of the primary ENI", atStart)
	if v.newENIs() > 0 {
		why += fmt.Sprintf(", %d (create, attach, modify) for each of %d more; with the ENI that WARM_ENI_TARGET=1 keeps in reserve, which is "+
			"begun before the last pod runs, %d", perENI, v.newENIs(), n+perENI)
	}
	return bound{float64(n), why}
}
