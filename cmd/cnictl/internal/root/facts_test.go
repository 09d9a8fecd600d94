package root

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/util/jsonpath"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/fleettest"
	"cnictl/testenv/kube/fleetsim"
	"cnictl/testenv/text/tour"
)

// The sources of facts in the test.
const (
	ofTour = iota // docs/tour.cnirec
	ofNode        // a node that answers what no recording has
	ofSim         // a simulated cluster: what Kubernetes knows
)

// fact is something that a screen shows, and the command that prints it: as the members of -o json
// at a JSONPath, or as a column.
type fact struct {
	what, command, path string
	of                  int
}

// facts are the facts of all screens, in the order of docs/tui.md.
var facts = []struct {
	screen string
	facts  []fact
}{
	{"Overview", []fact{
		{"nodes: all, live, stale, unreachable, forbidden", "status", "{.nodes}", ofTour},
		{"problems of all nodes, worst first", "status", "{.problems[*].message}", ofTour},
		{"addresses used, cooling, free, held, and what the nodes can hold", "status", "{.addresses}", ofTour},
		{"addresses held free", "subnets", "{.items[*].wasted}", ofTour},
		{"when it was read", "status", "{.sampledAt}", ofTour},
		{"subnets: range, size, free, /28s", "subnets", "{.items[*]['cidr','usable','available','freeBlocks']}", ofTour},
		{"NODE", "nodes", "{.items[*].metadata.name}", ofTour},
		{"TYPE", "nodes", "{.items[*].summary.instanceType}", ofTour},
		{"ENI", "nodes", "{.items[*].summary.cards[*]['enis','eniLimit']}", ofTour},
		{"IP", "nodes", "{.items[*].summary.cards[*]['assigned','total']}", ofTour},
		{"WARM", "nodes", "{.items[*].summary.cards[*].free}", ofTour},
		{"COOLING", "nodes", "{.items[*].summary.cards[*].cooling}", ofTour},
		{"TRUNK/BR", "nodes", "{.items[*].summary.trunk['eniId','branchUsed','branchLimit']}", ofTour},
		{"MAXPODS, and its verdict", "nodes", "{.items[*].summary.maxPods['value','verdict']}", ofTour},
		{"TREND 15m", "nodes", "trend", ofTour},
		{"STATUS", "nodes", "state", ofTour},
		{"zone, age and labels of the Node", "nodes", "{.items[*].object}", ofTour},
	}},
	{"Node", []fact{
		{"state, connection, latency", "node NODE", "{['state','via','latencySeconds']}", ofTour},
		{"version and start time of the daemon", "node NODE", "{.summary['version','startedAt']}", ofTour},
		{"ENIs: card, device, subnet, kind", "node enis NODE", "{.items[*]['card','device','id','subnetId','primary','trunk']}", ofTour},
		{"slots used and held, prefixes", "node enis NODE", "{.items[*]['assigned','total','prefixes']}", ofTour},
		{"the addresses of a prefix", "node enis NODE", "{.items[*].cidrs[*]['cidr','addresses']}", ofTour},
		{"targets and cooldown", "node NODE", "{.summary['targets','cooldownSeconds']}", ofTour},
		{"the pool over time", "nodes", "trend", ofTour},
		{"used, cooling, free", "node NODE", "{.summary.cards[*]['assigned','cooling','free']}", ofTour},
		{"its problems", "status", "{.problems[?(@.node=='NODE')].message}", ofTour},
		{"waiting ADDs, and since when", "node NODE", "{.summary['waitingAdds','waitingSince']}", ofTour},
		{"back-offs", "node NODE", "{.summary.backoffs[*]['scope','id','until','cause']}", ofTour},
		{"next actions, and why", "node plan NODE", "{.current.actions[*]['text','reason','title']}", ofNode},
		{"the same with other targets", "node plan NODE --warm-ip-target 6", "{.whatIf.actions[*]['text','reason']}", ofNode},
		{"targets out of reach", "node plan NODE --warm-ip-target 6", "{.whatIf.unmet[*]['target','title']}", ofNode},
		{"blocked cards", "node plan NODE --warm-ip-target 6", "{.whatIf.blocked[*]['cause','message']}", ofNode},
		{"recent decisions", "events NODE --daemon", "{.items[?(@.from=='daemon')]['what','message']}", ofNode},
		{"EC2 calls and errors, and when last", "node NODE", "{.summary.ec2Calls[*]['action','calls','errors','lastAt']}", ofTour},
		{"recent errors", "node NODE", "{.summary.lastErrors[*]['at','operation','message','count']}", ofTour},
		{"ADDs and DELs, failures by cause", "node NODE", "{.summary['adds','dels']}", ofTour},
		{"ADDs, DELs and EC2 calls per minute", "top", "{.items[*]['addsPerMinute','delsPerMinute','ec2PerMinute']}", ofTour},
		{"the calculation of max-pods", "node NODE", "{.summary.maxPods.terms[*]['name','value']}", ofTour},
		{"settings, their sources and problems", "node config NODE", "{.items[*]['name','effective','source','problem']}", ofNode},
	}},
	{"ENI", []fact{
		{"addresses: state, pod", "node ips NODE", "{.items[*]['address','state','podNamespace','podName']}", ofTour},
		{"when it was assigned and released", "ips", "{.items[*]['assignedAt','unassignedAt']}", ofTour},
		{"the prefix of each address", "node ips NODE", "{.items[*].cidr}", ofTour},
		{"the cooldown", "node NODE", "{.summary.cooldownSeconds}", ofTour},
		{"card, device, subnet, route table", "node enis NODE", "{.items[*]['card','device','subnetId','routeTable']}", ofTour},
	}},
	{"Pod", []fact{
		{"address, ENI, subnet, route table, since when", "pod POD", "{.interfaces[*]['address','eniId','subnetId','routeTable','assignedAt']}", ofNode},
		{"kernel state: link, rules, routes, neighbours", "pod POD", "{.interfaces[*].observed}", ofNode},
		{"differences from the expected state", "pod POD", "{.interfaces[*].differences[*]}", ofNode},
		{"history", "pod POD", "{.timeline[*]['at','what','message']}", ofNode},
		{"the pod in Kubernetes", "pod POD", "{.kubernetes}", ofSim},
		{"branch ENI, VLAN, security groups, annotation", "pod BRANCHPOD", "{.branch}", ofSim},
		{"the node of an address", "ips --ip ADDRESS", "{.items[*]['node','eniId','podName']}", ofTour},
	}},
	{"Pods", []fact{
		{"all pods: node, state, address, ENI, reason", "pods", "{.items[*]['name','node','state','address','eniId','reason']}", ofTour},
		{"the pods of a node: state, address, ENI", "node pods NODE", "{.items[*]['name','state','address','eniId']}", ofSim},
	}},
	{"Trunks", []fact{
		{"nodes, state, trunk ENI", "trunks", "{.items[*]['node','state','eniId']}", ofTour},
		{"branch ENIs used, and their limit", "trunks", "{.items[*]['branchUsed','branchLimit']}", ofTour},
		{"instance types without trunk support", "trunks", "{.items[?(@.state!='attached')]['node','instanceType','state']}", ofNode},
		{"cooling branch ENIs, waiting pods", "trunks", "{.items[*]['cooling','waiting']}", ofTour},
		{"capacity advertised by the node", "trunks", "{.items[*].advertised}", ofSim},
	}},
	{"Subnets", []fact{
		{"addresses free, held, held free, used by others", "subnets", "{.items[*]['available','held','wasted','others']}", ofTour},
		{"free and fragmented /28s", "subnets", "{.items[*]['freeBlocks','spoiledBlocks']}", ofTour},
		{"map: the use of each /28", "subnets SUBNET", "{.blocks[*]['prefix','use','held','used','node']}", ofTour},
		{"map: the nodes in a /28", "subnets SUBNET", "{.blocks[1].holders[*]['node','held','used']}", ofTour},
		{"how fast it fills up", "subnets", "{.items[*]['changePerHour','measuredSeconds']}", ofTour},
		{"age of EC2's count", "subnets", "{.items[*].asOf}", ofTour},
	}},
	{"Doctor", []fact{
		{"causes: severity, nodes, failed ADDs, meaning", "status", "{.causes[*]['severity','code','nodes','failedAdds','title']}", ofTour},
		{"the nodes of a cause, with their messages", "status", "{.problems[?(@.code=='subnet-exhausted')]['node','message']}", ofTour},
		{"failed ADDs of a node by cause", "node NODE", "{.summary.adds.causes}", ofTour},
		{"back-offs and recent errors", "node NODE", "{.summary['backoffs','lastErrors']}", ofTour},
		{"failed ADDs, one by one", "pod FAILEDPOD", "{.failures[*]['at','cause','detail']}", ofNode},
	}},
	{"Logs", []fact{
		{"log lines: time, level, node, text", "logs NODE", "{.items[*]['at','level','node','message']}", ofNode},
		{"daemon events", "events NODE --daemon", "{.items[?(@.from=='daemon')]['at','what','object','message']}", ofNode},
		{"Kubernetes events", "events", "{.items[?(@.from=='kubernetes')]['at','what','object','message']}", ofSim},
	}},
	{"Diagnostics", []fact{
		{"nodes read and failed, with reasons", "status", "{.sweep['nodes','read','failed','failedBy']}", ofTour},
		{"latency p50 and p99", "status", "{.sweep['latencyP50Seconds','latencyP99Seconds']}", ofTour},
		{"duration of a round", "status", "{.sweep.seconds}", ofNode},
		{"per node: state, connection, latency, time", "nodes", "{.items[*]['state','via','latencySeconds','sampledAt']}", ofTour},
		{"why a node could not be read", "nodes", "{.errors[*]['node','reason','message']}", ofTour},
	}},
}

// factWorld provides the sources of the facts.
type factWorld struct {
	world
	recording, kubeconfig string
	names                 [3]*strings.Replacer // values of the capitalised words, by source
	documents             sync.Map             // from sources and commands to functions that return what they print
}

func newFactWorld(t *testing.T) *factWorld {
	t.Helper()
	w := &factWorld{world: newWorld(t), recording: filepath.ToSlash(tour.Path(t, tour.File))}
	dir := t.TempDir()
	w.targets["rich"] = rich(t, dir, fleettest.Secondary())
	w.targets["trunkless"] = fleettest.ServeBody(t, dir, "trunkless", `{"kind":"NodeSummary","instanceType":"t3.medium","cards":[{"total":5,"free":5}],"trunk":{"enabled":true,"supported":false}}`)
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 40, Seed: 3, Churn: -1})
	var branch atomic.Value // a string, once a pod is chosen
	w.kubeconfig = altered(t, sim, func(kind string, o map[string]any) {
		if m := o["metadata"].(map[string]any); kind == "Pod" && branch.Load() == fmt.Sprint(m["namespace"], "/", m["name"]) {
			m["annotations"] = map[string]any{"vpc.amazonaws.com/pod-eni": branchAnnotation}
		}
	}, map[string][]any{"Event": {sandboxEvent("shop", "cart-1", fleetsim.NodeName(0), time.Now())}})
	w.names[ofTour] = strings.NewReplacer("NODE", tour.Starved, "SUBNET", "subnet-0cc33dd44ee55ff66", "ADDRESS", "10.0.1.22")
	w.names[ofNode] = strings.NewReplacer("NODE", "rich", "FAILEDPOD", "shop/cart-7d9f-9", "POD", "shop/cart-7d9f-1")
	w.names[ofSim] = strings.NewReplacer("NODE", fleetsim.NodeName(0))
	pods := w.asked(t, []string{"ips", "-o", `jsonpath={range .items[?(@.podName!="")]}{.podNamespace}/{.podName}{"\n"}{end}`}, ofSim)
	several := strings.Fields(pods)
	if len(several) < 2 {
		t.Fatalf("pods: %q", pods)
	}
	branch.Store(several[1])
	w.names[ofSim] = strings.NewReplacer("NODE", fleetsim.NodeName(0), "BRANCHPOD", several[1], "POD", several[0])
	return w
}

// asked runs a command on one of the sources and returns its output.
func (w *factWorld) asked(t *testing.T, args []string, of int) string {
	t.Helper()
	stdout, stderr, code := w.ran(t, args, of)
	if code != cli.ExitOK && code != cli.ExitPartial {
		t.Errorf("cnictl %q: exit %d\n%s", args, code, stderr)
	}
	return stdout
}

// document returns what a command prints with -o json. Each command runs once.
func (w *factWorld) document(t *testing.T, args []string, of int) any {
	t.Helper()
	read, _ := w.documents.LoadOrStore(fmt.Sprint(of, args), sync.OnceValue(func() (doc any) {
		out := w.asked(t, append(slices.Clone(args), "-o", "json"), of)
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Errorf("%q: %v\n%.200s", args, err, out)
		}
		return doc
	}))
	return read.(func() any)()
}

// ran runs a command on one of the sources.
func (w *factWorld) ran(t *testing.T, args []string, of int) (stdout, stderr string, code int) {
	t.Helper()
	now := fleettest.Now
	switch of {
	case ofTour:
		args = append(args, "--replay", w.recording)
	case ofNode:
		args = append(args, "--targets="+w.list("rich", "trunkless"))
	case ofSim:
		// Few at a time, so that even a slow machine answers each in time.
		args, now = append(args, "--kubeconfig="+w.kubeconfig, "--concurrency=4", "--node-timeout=1m"), time.Now
	}
	var out, errOut bytes.Buffer
	f := &cli.Factory{
		Streams: &cli.Streams{Out: &out, Err: &errOut, Size: func() (int, int) { return 80, 24 }}, Env: call{}.lookup, Now: now, Name: "cnictl", Version: "v1.2.3",
		Tick: func(time.Duration) (<-chan time.Time, func()) {
			ticks := make(chan time.Time, 1)
			ticks <- now()
			return ticks, func() {}
		},
		LocalTarget: func(context.Context) (fleet.Target, bool) { return fleet.Target{}, false },
	}
	code = Main(t.Context(), f, args)
	return out.String(), errOut.String(), code
}

// TestFacts: every fact of the screens is where the table says.
func TestFacts(t *testing.T) {
	t.Parallel()
	w := newFactWorld(t)
	for _, s := range facts {
		for _, f := range s.facts {
			t.Run(s.screen+"/"+f.what, func(t *testing.T) {
				t.Parallel()
				name := w.names[f.of].Replace
				args := strings.Fields(name(f.command))
				if !strings.HasPrefix(f.path, "{") {
					if out := w.asked(t, append(args, "--no-headers", "-o", "custom-columns="+f.path), f.of); strings.Trim(out, " -\n") == "" {
						t.Errorf("the column %s is empty", f.path)
					}
					return
				}
				doc := w.document(t, args, f.of)
				for _, path := range members(name(f.path)) {
					p := jsonpath.New(path).AllowMissingKeys(true)
					if err := p.Parse(path); err != nil {
						t.Fatal(err)
					}
					found, err := p.FindResults(doc)
					if err != nil || !slices.ContainsFunc(slices.Concat(found...), func(v reflect.Value) bool { return hasFacts(v.Interface()) }) {
						t.Errorf("%s leads to %v, %v", path, found, err)
					}
				}
			})
		}
	}
}

// members splits a path that ends in several members into one path each.
func members(path string) []string {
	before, list, several := strings.Cut(path, "['")
	list, ok := strings.CutSuffix(list, "']}")
	if !several || !ok {
		return []string{path}
	}
	var out []string
	for name := range strings.SplitSeq(list, "','") {
		out = append(out, before+"['"+name+"']}")
	}
	return out
}

// hasFacts reports whether a JSON value contains anything known.
func hasFacts(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case string:
		return v != ""
	case []any:
		for _, item := range v {
			if hasFacts(item) {
				return true
			}
		}
		return false
	case map[string]any:
		for _, item := range v {
			if hasFacts(item) {
				return true
			}
		}
		return false
	}
	return true
}

// factTable renders the table of facts for a page.
func factTable() string {
	var out strings.Builder
	for _, s := range facts {
		fmt.Fprintf(&out, "| %s | command | JSONPath, or column |\n|---|---|---|\n", s.screen)
		for _, f := range s.facts {
			fmt.Fprintf(&out, "| %s | `%s` | `%s` |\n", f.what, f.command, f.path)
		}
		out.WriteString("\n")
	}
	return strings.TrimSuffix(out.String(), "\n")
}
