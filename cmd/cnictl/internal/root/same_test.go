package root

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/fleettest"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/store"
	"cnictl/testenv/kube/fleetsim"
	"cnictl/testenv/text/tour"
)

// asked is a fleet that commands are asked about.
type asked struct {
	w     world
	which string // the flags that select it
	tour  bool
}

func onTour(t *testing.T) asked {
	t.Helper()
	return asked{newWorld(t), "--replay " + filepath.ToSlash(tour.Path(t, tour.File)), true}
}

// simulated is a fleet at one moment, ten minutes after its start: nodes without faults with our daemon and
// upstream's, some that EC2 gives no addresses, and some that cannot be read. Left out are nodes that answer late
// or never, as each command would wait for them, and those that contradict themselves or Kubernetes.
func simulated(t *testing.T) asked {
	t.Helper()
	var now atomic.Pointer[time.Time]
	now.Store(new(fleettest.Now().Add(-10 * time.Minute)))
	sim := fleetsim.New(t, fleetsim.Options{
		Nodes: 24, Seed: 3, UpstreamShare: 0.2, Churn: 20 * time.Second, Now: func() time.Time { return *now.Load() },
		Named: map[string][]fleetsim.Trait{
			fleetsim.NodeName(1): {fleetsim.FullSubnet}, fleetsim.NodeName(5): {fleetsim.Throttled}, fleetsim.NodeName(9): {fleetsim.Unauthorized},
			fleetsim.NodeName(2): {fleetsim.Refused}, fleetsim.NodeName(7): {fleetsim.NotReady}, fleetsim.NodeName(10): {fleetsim.Half},
			fleetsim.NodeName(11): {fleetsim.Garbage}, fleetsim.NodeName(12): {fleetsim.WrongJSON}, fleetsim.NodeName(13): {fleetsim.Huge},
			fleetsim.NodeName(3): {fleetsim.Fargate}, fleetsim.NodeName(14): {fleetsim.Windows}, fleetsim.NodeName(15): {fleetsim.NoDaemon},
			fleetsim.NodeName(17): {fleetsim.UnixSocket}, fleetsim.NodeName(18): {fleetsim.Flapping},
		},
	})
	now.Store(new(fleettest.Now()))
	file, err := sim.WriteKubeconfig(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return asked{newWorld(t), "--node-timeout=1m --kubeconfig=" + filepath.ToSlash(file), false}
}

// fleets runs a test on each fleet about which all commands must agree.
func fleets(t *testing.T, same func(t *testing.T, of asked)) {
	t.Helper()
	for name, of := range map[string]func(*testing.T) asked{"tour": onTour, "simulated": simulated} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			same(t, of(t))
		})
	}
}

// run runs a command. Exit code 4 is for nodes that do not answer, 7 for what the doctor finds.
func (a asked) run(t *testing.T, args string) string {
	t.Helper()
	stdout, stderr, code := a.w.runNoun(t, call{args: args + " " + a.which})
	if code != 0 && code != 4 && code != 7 {
		t.Fatalf("%s: exit %d\n%s%s", args, code, stdout, stderr)
	}
	return stdout
}

func read[T any](t *testing.T, a asked, args string) (doc T) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.run(t, args+" -o json")), &doc); err != nil {
		t.Fatalf("%s: %v", args, err)
	}
	return doc
}

// TestSame_TimeLeft: subnets, one subnet, status and the forecast say the same about each subnet, and
// so does the row of the screen.
func TestSame_TimeLeft(t *testing.T) {
	t.Parallel()
	w := onTour(t)
	status, statusText := read[document.FleetStatus](t, w, "status"), w.run(t, "status")
	forecast, table := read[document.CapacityForecastList](t, w, "capacity forecast"), w.run(t, "subnets")
	list := read[document.SubnetList](t, w, "subnets")
	player := tour.Open(t)
	if len(list.Items) != 3 || len(status.Subnets) != 3 || len(forecast.Items) != 3 {
		t.Fatalf("%d, %d, %d subnets", len(list.Items), len(status.Subnets), len(forecast.Items))
	}
	for i, s := range list.Items {
		says := map[string]string{"subnets": s.Left, "status": status.Subnets[i].Left, "one subnet": read[document.SubnetMap](t, w, "subnets "+s.ID).Left}
		for _, f := range forecast.Items {
			if f.ID == s.ID {
				says["forecast"] = f.Left
			}
		}
		for _, u := range player.View().Subnets {
			if u.ID == s.ID {
				says["the screen"] = inventory.Forecasts{}.Subnet(u, tour.End()).Forecast.Words()
			}
		}
		for who, left := range says {
			if left == "" || left != s.Left {
				t.Errorf("%s: %s says %q, subnets %q", s.ID, who, left, s.Left)
			}
		}
		if one := w.run(t, "subnets "+s.ID); len(says) != 5 || !strings.Contains(table, s.Left) || !strings.Contains(one, "left        "+s.Left) || !strings.Contains(statusText, s.Left) {
			t.Errorf("%s: %q is not in the tables:\n%s%s%s", s.ID, s.Left, table, one, statusText)
		}
	}
}

// counts are of the addresses of a node.
type counts struct{ used, cooling, free, held int }

func (c *counts) add(used, cooling, free, held int) {
	c.used, c.cooling, c.free, c.held = c.used+used, c.cooling+cooling, c.free+free, c.held+held
}

// TestSame_Counts: nodes, enis, ips, ips --by, status and the columns in CSV agree on the addresses of each node
// and of the fleet.
func TestSame_Counts(t *testing.T) {
	t.Parallel()
	fleets(t, func(t *testing.T, of asked) {
		want, all := map[string]counts{}, counts{}
		for _, n := range read[document.NodeIPAMList](t, of, "nodes").Items {
			if n.Summary == nil {
				continue
			}
			var c counts
			for _, card := range n.Summary.Cards {
				if card.Cooling == nil {
					t.Fatalf("%s: cooling is unknown", n.Metadata.Name)
				}
				c.add(card.Assigned, *card.Cooling, card.Free, card.Total)
			}
			if c.used+c.cooling+c.free != c.held {
				t.Errorf("%s: %+v", n.Metadata.Name, c)
			}
			want[n.Metadata.Name] = c
			all.add(c.used, c.cooling, c.free, c.held)
		}
		enis, ips, csv := map[string]counts{}, map[string]counts{}, map[string]counts{}
		for _, e := range read[document.ENIList](t, of, "enis").Items {
			c := enis[e.Node]
			c.add(e.Assigned, e.Cooling, e.Free, e.Total)
			enis[e.Node] = c
		}
		for _, a := range read[document.AddressList](t, of, "ips").Items {
			c := ips[a.Node]
			in := map[string]int{a.State: a.Count}
			c.add(in[introspect.AddressAssigned], in[introspect.AddressCooling], in[introspect.AddressFree], a.Count)
			ips[a.Node] = c
		}
		for line := range strings.Lines(of.run(t, "nodes -o csv --no-headers --columns node,used,cooling,free")) {
			cells := strings.Split(strings.TrimSpace(line), ",")
			if cells[1] != "?" && cells[1] != "-" {
				n := make([]int, 3)
				for i := range n {
					n[i], _ = strconv.Atoi(cells[i+1])
				}
				csv[cells[0]] = counts{n[0], n[1], n[2], n[0] + n[1] + n[2]}
			}
		}
		for by, got := range map[string]map[string]counts{"enis": enis, "ips": ips, "the CSV": csv} {
			if len(got) < len(want)/2 { // the tour has the addresses of some nodes
				t.Errorf("%s has %d of %d nodes", by, len(got), len(want))
			}
			for name, c := range got {
				if c != want[name] {
					t.Errorf("%s: nodes has %+v, %s %+v", name, want[name], by, c)
				}
			}
		}
		for _, u := range read[document.AddressUseList](t, of, "ips --by node").Items {
			if _, read := ips[u.Name]; read && u.Assigned != want[u.Name].used {
				t.Errorf("%s: nodes has %d used, ips --by node %d", u.Name, want[u.Name].used, u.Assigned)
			}
		}
		if a := read[document.FleetStatus](t, of, "status").Addresses; (counts{*a.Assigned, *a.Cooling, *a.Free, *a.Total}) != all {
			t.Errorf("nodes add up to %+v, status has %+v", all, a)
		}
	})
}

// TestSame_Pods: the list of all pods, that of each node, the report of each pod without an address
// and the counts of its node agree on state, address, reason and the doctor's finding.
func TestSame_Pods(t *testing.T) {
	t.Parallel()
	fleets(t, samePods)
}

func samePods(t *testing.T, w asked) {
	all := read[document.PodList](t, w, "pods")
	of := map[string][]document.NodePodItem{}
	for _, p := range all.Items {
		of[p.Node] = append(of[p.Node], p.NodePodItem)
	}
	first := all.Items[0]
	if first.State != document.PodWaiting || w.tour && len(of) < 29 {
		t.Errorf("the first of %d pods on %d nodes is %+v", len(all.Items), len(of), first)
	}
	for _, n := range read[document.NodeIPAMList](t, w, "nodes").Items {
		if n.State != document.StateLive {
			continue
		}
		name, assigned, waiting := n.Metadata.Name, 0, 0
		same := map[string]document.NodePodItem{}
		for _, p := range of[name] {
			same[p.Namespace+"/"+p.Name+" "+p.Address] = p
			if p.State == document.PodHasAddress {
				assigned++
			}
			if p.State == document.PodWaiting && strings.HasPrefix(p.Reason, "subnet-exhausted: ") {
				waiting++
			}
		}
		held := 0
		for _, card := range n.Summary.Cards {
			held += card.Assigned
		}
		if held != assigned {
			t.Errorf("%s: %d addresses assigned, %d pods have one", name, held, assigned)
		}
		if w.tour && n.Summary.WaitingADDs != nil && *n.Summary.WaitingADDs != waiting {
			t.Errorf("%s: %d ADDs wait, %d pods", name, *n.Summary.WaitingADDs, waiting)
		}
		here := read[document.NodePodList](t, w, "node pods "+name).Items
		if len(here) != len(same) {
			t.Errorf("%s: %d pods, %d in the list of all", name, len(here), len(same))
		}
		for _, p := range here {
			other := same[p.Namespace+"/"+p.Name+" "+p.Address]
			if p.State != other.State || p.Reason != other.Reason || p.ENIID != other.ENIID || p.Finding != other.Finding {
				t.Errorf("%s: %+v, in the list of all %+v", name, p, other)
			}
			if p.State == document.PodWaiting {
				samePod(t, w, p)
			}
		}
	}
}

// samePod: the report and the doctor say of a pod without an address what the list says.
func samePod(t *testing.T, w asked, p document.NodePodItem) {
	t.Helper()
	name := p.Namespace + "/" + p.Name
	if r := read[document.PodReport](t, w, "pod "+name); r.State != p.State || !strings.Contains(r.Verdict, p.Reason) || r.Finding != p.Finding {
		t.Errorf("%s: the list has %q, %q, the report %q, %q", name, p.Reason, p.Finding, r.Verdict, r.Finding)
	}
	if text := w.run(t, "doctor pod "+name+" --once --exit-zero"); !strings.Contains(text, p.Finding) {
		t.Errorf("%s: the doctor does not find %s:\n%s", name, p.Finding, text)
	}
}

// TestSame_Status: the worst problem of a node has the same name in the list of nodes, the node and the doctor.
func TestSame_Status(t *testing.T) {
	t.Parallel()
	fleets(t, func(t *testing.T, of asked) {
		worsts := map[string]bool{}
		for _, n := range read[document.NodeIPAMList](t, of, "nodes").Items {
			worst, found := store.NewNode(n).Worst()
			if !found {
				continue
			}
			name, code := n.Metadata.Name, worst.Name()
			worsts[code] = true
			for who, text := range map[string]string{
				"nodes": of.run(t, "nodes "+name), "node": of.run(t, "node "+name), "the doctor": of.run(t, "doctor "+name+" --once --exit-zero"),
			} {
				if !strings.Contains(text, code) {
					t.Errorf("%s: %s (%s) is not what %s says:\n%s", name, code, worst.Message, who, text)
				}
			}
		}
		if want := []string{"aws/iam", "aws/throttled", "ip/subnet-exhausted"}; !of.tour && !slices.Equal(slices.Sorted(maps.Keys(worsts)), want) {
			t.Errorf("the worst problems of nodes are %v, want %v", slices.Sorted(maps.Keys(worsts)), want)
		}
	})
}

// TestTasks: the three questions of a first hour take one command each.
func TestTasks(t *testing.T) {
	t.Parallel()
	w := onTour(t)
	for args, want := range map[string][]string{
		"pods": {"shop/checkout-6c8d4f-9x2lq", "waiting", "ip/subnet-exhausted"}, // which pods have no address, and why
		"doctor pod shop/checkout-6c8d4f-9x2lq --once --exit-zero": {"ip/subnet-exhausted", "fix"},
		"subnets": {"LEFT", "none left", "~4d"}, // which subnet runs out first, and when
		"status":  {"subnet-0aa11bb22cc33dd44 has none left; next to run out: subnet-0bb22cc33dd44ee55 in ~4d"},
		"capacity recommend --type m5.large --pods 20": {"MINIMUM_IP_TARGET"}, // which warm targets
	} {
		run := w.run
		if strings.HasPrefix(args, "capacity recommend") {
			run = func(t *testing.T, args string) string {
				out, errOut, code := w.w.runNoun(t, call{args: args})
				if code != 0 {
					t.Errorf("exit %d\n%s", code, errOut)
				}
				return out + errOut
			}
		}
		out := run(t, args)
		for _, text := range want {
			if !strings.Contains(strings.ToLower(out), strings.ToLower(text)) {
				t.Errorf("%s: no %q in\n%s", args, text, out)
			}
		}
	}
}
