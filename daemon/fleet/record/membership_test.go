package record

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
)

// TestWriter_Membership: while nodes join, leave, come back and change machines at random, a
// replay has the nodes of the live fleet at every moment, each with the history and documents
// that it had there. The names are those of EC2, whose order is not that of their bytes.
func TestWriter_Membership(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			membership(t, rand.New(rand.NewPCG(seed, 3)))
		})
	}
}

func membership(t *testing.T, random *rand.Rand) {
	var names []string
	for _, third := range []int{1, 9, 10, 11, 99, 100} {
		for _, fourth := range []int{5, 10, 47} {
			names = append(names, fmt.Sprintf("ip-10-0-%d-%d.eu-west-1.compute.internal", third, fourth))
		}
	}
	var out bytes.Buffer
	w, err := NewWriter(&out, Header{StartedAt: start})
	if err != nil {
		t.Fatal(err)
	}
	live, documented := store.New().KeepENIs(), map[string]string{}
	machine := map[string]int{}
	type moment struct {
		at    time.Time
		view  *store.View
		plans map[string]string
	}
	var moments []moment
	at := start
	for step := range 100 {
		at = at.Add(time.Duration(10+random.IntN(40)) * time.Second)
		for _, name := range names {
			present := live.Node(name) != nil
			switch dice := random.IntN(20); {
			case present && dice == 0, !present && dice > 2:
				live.Remove(name)
				delete(documented, name)
				continue
			case present && dice == 1: // it left and came back between two views
				live.Remove(name)
				delete(documented, name)
			case present && dice == 2: // the name is now another machine's
				machine[name]++
				delete(documented, name)
			case present && dice < 8:
				continue // not read this time
			}
			n := sample(name, random.IntN(18), at)
			n.Object.InstanceID = fmt.Sprint("i-", machine[name])
			live.PutAt(n, at)
		}
		err = errors.Join(err, w.WriteView(live.View(), at))
		for _, name := range names {
			if live.Node(name) != nil && random.IntN(4) == 0 {
				documented[name] = fmt.Sprint("plan ", step)
				err = errors.Join(err, w.WriteDocuments(watch.Detail{Node: name, Plan: &introspect.NodePlan{Actions: []introspect.PlannedAction{{Text: documented[name]}}}}, at))
			}
		}
		moments = append(moments, moment{at, live.View(), maps.Clone(documented)})
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	played, clock := open(t, out.Bytes())
	sought, _ := open(t, out.Bytes())
	check := func(how string, p *Player, m moment, since time.Time) {
		t.Helper()
		plans := map[string]string{}
		for _, n := range p.View().Nodes {
			if d := p.Detail(t.Context(), n.Metadata.Name, watch.WantPlan, watch.Query{}); d.Plan != nil {
				plans[n.Metadata.Name] = d.Plan.Actions[0].Text
			}
		}
		if got, want := fleetOf(p.View(), plans, since), fleetOf(m.view, m.plans, since); got != want {
			t.Fatalf("%s, at %v:\n%s\nlive:\n%s", how, m.at.Sub(start), got, want)
		}
	}
	for _, m := range moments {
		*clock = clock.Add(m.at.Sub(played.Now()))
		played.Advance()
		check("played", played, m, start)
	}
	for range 20 {
		m := moments[random.IntN(len(moments))]
		sought.Seek(m.at)
		check("sought", sought, m, m.at.Add(-store.HistoryLen*store.Spacing)) // a seek reads no earlier samples
	}
}

// fleetOf describes the nodes of a view in their order, with their plans and the points of
// their histories after a time.
func fleetOf(v *store.View, plans map[string]string, since time.Time) string {
	var lines []string
	for _, n := range v.Nodes {
		history := slices.DeleteFunc(slices.Clone(n.History), func(p store.Point) bool { return p.At().Before(since) })
		lines = append(lines, fmt.Sprintf("%s %s: %d assigned, %v, %q", n.Metadata.Name, n.Object.InstanceID, n.Assigned, history, plans[n.Metadata.Name]))
	}
	return strings.Join(append(lines, fmt.Sprint(len(lines), " nodes")), "\n")
}
