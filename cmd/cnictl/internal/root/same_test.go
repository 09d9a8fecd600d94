package root

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/inventory"
	"cnictl/testenv/text/tour"
)

// onTour runs a command on the tour. Exit code 4 is for the one node that does not answer.
func onTour(t *testing.T, w world, args string) string {
	t.Helper()
	stdout, stderr, code := w.runNoun(t, call{args: args + " --replay " + filepath.ToSlash(tour.Path(t, tour.File))})
	if code != 0 && code != 4 && code != 7 {
		t.Fatalf("%s: exit %d\n%s%s", args, code, stdout, stderr)
	}
	return stdout
}

func read[T any](t *testing.T, w world, args string) (doc T) {
	t.Helper()
	if err := json.Unmarshal([]byte(onTour(t, w, args+" -o json")), &doc); err != nil {
		t.Fatalf("%s: %v", args, err)
	}
	return doc
}

// TestSame_TimeLeft: subnets, one subnet, status and the forecast say the same about each subnet, and
// so does the row of the screen.
func TestSame_TimeLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	status, statusText := read[document.FleetStatus](t, w, "status"), onTour(t, w, "status")
	forecast, table := read[document.CapacityForecastList](t, w, "capacity forecast"), onTour(t, w, "subnets")
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
		if one := onTour(t, w, "subnets "+s.ID); len(says) != 5 || !strings.Contains(table, s.Left) || !strings.Contains(one, "left        "+s.Left) || !strings.Contains(statusText, s.Left) {
			t.Errorf("%s: %q is not in the tables:\n%s%s%s", s.ID, s.Left, table, one, statusText)
		}
	}
}

// TestSame_Pods: the list of all pods, that of each node, the report of each pod without an address
// and the counts of its node agree on state, address, reason and the doctor's finding.
func TestSame_Pods(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := read[document.PodList](t, w, "pods")
	of := map[string][]document.NodePodItem{}
	for _, p := range all.Items {
		of[p.Node] = append(of[p.Node], p.NodePodItem)
	}
	first := all.Items[0]
	if first.State != document.PodWaiting || len(of) < 29 {
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
		if got := n.Summary.Cards[0].Assigned; got != assigned {
			t.Errorf("%s: %d addresses assigned, %d pods have one", name, got, assigned)
		}
		if n.Summary.WaitingADDs != nil && *n.Summary.WaitingADDs != waiting {
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
			if p.State != document.PodWaiting {
				continue
			}
			if r := read[document.PodReport](t, w, "pod "+p.Namespace+"/"+p.Name); r.State != p.State || !strings.Contains(r.Verdict, p.Reason) || r.Finding != p.Finding {
				t.Errorf("%s/%s: the list has %q, %q, the report %q, %q", p.Namespace, p.Name, p.Reason, p.Finding, r.Verdict, r.Finding)
			}
			if text := onTour(t, w, "doctor pod "+p.Namespace+"/"+p.Name+" --once --exit-zero"); !strings.Contains(text, p.Finding) {
				t.Errorf("%s/%s: the doctor does not find %s:\n%s", p.Namespace, p.Name, p.Finding, text)
			}
		}
	}
}

// TestTasks: the three questions of a first hour take one command each.
func TestTasks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for args, want := range map[string][]string{
		"pods": {"shop/checkout-6c8d4f-9x2lq", "waiting", "ip/subnet-exhausted"}, // which pods have no address, and why
		"doctor pod shop/checkout-6c8d4f-9x2lq --once --exit-zero": {"ip/subnet-exhausted", "fix"},
		"subnets": {"LEFT", "none left", "~4d"}, // which subnet runs out first, and when
		"status":  {"subnet-0aa11bb22cc33dd44 has none left; next to run out: subnet-0bb22cc33dd44ee55 in ~4d"},
		"capacity recommend --type m5.large --pods 20": {"MINIMUM_IP_TARGET"}, // which warm targets
	} {
		run := onTour
		if strings.HasPrefix(args, "capacity recommend") {
			run = func(t *testing.T, w world, args string) string {
				out, errOut, code := w.runNoun(t, call{args: args})
				if code != 0 {
					t.Errorf("exit %d\n%s", code, errOut)
				}
				return out + errOut
			}
		}
		out := run(t, w, args)
		for _, text := range want {
			if !strings.Contains(strings.ToLower(out), strings.ToLower(text)) {
				t.Errorf("%s: no %q in\n%s", args, text, out)
			}
		}
	}
}
