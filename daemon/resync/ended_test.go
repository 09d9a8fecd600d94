package resync

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/ipam"
)

func allocation(name, sandbox, ip string, age time.Duration) ipam.Assignment {
	return ipam.Assignment{
		Sandbox: ipam.Sandbox{Network: "aws-cni", ContainerID: sandbox, IfName: "eth0"},
		Pod:     ipam.Pod{Namespace: "shop", Name: name}, Address: netip.MustParseAddr(ip), AssignedAt: morning.Add(-age),
	}
}

func hashOf(ns, name string) string { return netnames.Hash(ns, name, 0) }

func TestEnded(t *testing.T) {
	t.Parallel()
	var (
		cart      = allocation("cart", "aaa", "10.0.0.11", time.Hour)
		cartAnew  = allocation("cart", "bbb", "10.0.0.12", 2*LinkDelay)
		web       = allocation("web", "ccc", "10.0.0.13", time.Hour)
		young     = allocation("new", "ddd", "10.0.0.14", LinkDelay-10*time.Second)
		several   = allocation("several", "fff", "10.0.0.17", time.Hour)
		anonymous = allocation("", "eee", "10.0.0.15", time.Hour)
		rebuilt   = ipam.Assignment{Sandbox: Recovered("eni123"), Address: netip.MustParseAddr("10.0.0.16")}
		timeless  = ipam.Assignment{Sandbox: cart.Sandbox, Pod: cart.Pod, Address: cart.Address}
	)
	severalLater := allocation("several", "fff", "10.1.0.17", 2*LinkDelay)
	severalLater.Sandbox.Interface = 1
	long := morning.Add(-EndedGap)
	route := func(a ipam.Assignment, link string) PodRoute { return PodRoute{Address: a.Address, HostLink: link} }
	rows := []struct {
		name string
		in   EndedInput
		want EndedResult
	}{
		{"all linked", EndedInput{Assignments: []ipam.Assignment{cart, web, rebuilt}, Links: []string{"lo", link("cart"), link("web"), "eni123"}},
			EndedResult{Absent: Absences{}}},
		{"a card that was added later does not end the others", EndedInput{
			Assignments: []ipam.Assignment{several, severalLater}, Links: []string{"lo", link("several")}, Routes: []PodRoute{route(severalLater, link("several"))}},
			EndedResult{Absent: Absences{}}},
		{"the first check", EndedInput{Assignments: []ipam.Assignment{cart, web}, Links: []string{"lo", link("web")}},
			EndedResult{Absent: Absences{cart.Sandbox: morning}, Again: morning.Add(EndedGap)}},
		{"the second comes too soon", EndedInput{Assignments: []ipam.Assignment{cart}, Links: []string{"lo"}, Absent: Absences{cart.Sandbox: long.Add(1)}},
			EndedResult{Absent: Absences{cart.Sandbox: long.Add(1)}, Again: morning.Add(1)}},
		{"the second", EndedInput{Assignments: []ipam.Assignment{cart, web, rebuilt}, Links: []string{"lo", link("web")}, Absent: Absences{cart.Sandbox: long, rebuilt.Sandbox: long}},
			EndedResult{Ended: []ipam.Assignment{cart, rebuilt}, Absent: Absences{cart.Sandbox: long, rebuilt.Sandbox: long}}},
		{"it came back in between", EndedInput{Assignments: []ipam.Assignment{cart}, Links: []string{link("cart")}, Absent: Absences{cart.Sandbox: long}},
			EndedResult{Absent: Absences{}}},
		{"no list", EndedInput{Assignments: []ipam.Assignment{cart}, Absent: Absences{cart.Sandbox: long}},
			EndedResult{Absent: Absences{cart.Sandbox: long}}},
		{"its link is still to come", EndedInput{Assignments: []ipam.Assignment{young}, Links: []string{"lo"}, Absent: Absences{young.Sandbox: young.AssignedAt}},
			EndedResult{Absent: Absences{young.Sandbox: young.AssignedAt}, Again: morning.Add(10 * time.Second)}},
		{"absences of an earlier life do not count", EndedInput{Assignments: []ipam.Assignment{cart}, Links: []string{"lo"}, Absent: Absences{cart.Sandbox: cart.AssignedAt.Add(-1)}},
			EndedResult{Absent: Absences{cart.Sandbox: morning}, Again: morning.Add(EndedGap)}},
		{"nor those from the future", EndedInput{Assignments: []ipam.Assignment{cart}, Links: []string{"lo"}, Absent: Absences{cart.Sandbox: morning.Add(time.Hour)}},
			EndedResult{Absent: Absences{cart.Sandbox: morning}, Again: morning.Add(EndedGap)}},
		{"one that names no pod", EndedInput{Assignments: []ipam.Assignment{anonymous}, Links: []string{"lo"}, Absent: Absences{anonymous.Sandbox: long}},
			EndedResult{Absent: Absences{}}},
		{"one without a time is old", EndedInput{Assignments: []ipam.Assignment{timeless}, Links: []string{"lo"}, Absent: Absences{cart.Sandbox: long}},
			EndedResult{Ended: []ipam.Assignment{timeless}, Absent: Absences{cart.Sandbox: long}}},
		{"made anew under its name", EndedInput{Assignments: []ipam.Assignment{cart, cartAnew}, Links: []string{link("cart")}, Routes: []PodRoute{route(cartAnew, link("cart"))},
			Absent: Absences{cart.Sandbox: long}},
			EndedResult{Ended: []ipam.Assignment{cart}, Absent: Absences{cart.Sandbox: long}}},
		{"both still have a route", EndedInput{Assignments: []ipam.Assignment{cart, cartAnew}, Links: []string{link("cart")},
			Routes: []PodRoute{route(cart, link("cart")), route(cartAnew, link("cart"))}, Absent: Absences{cart.Sandbox: long}},
			EndedResult{Absent: Absences{}}},
		{"neither has", EndedInput{Assignments: []ipam.Assignment{cart, cartAnew}, Links: []string{link("cart")}, Routes: []PodRoute{}, Absent: Absences{cart.Sandbox: long}},
			EndedResult{Absent: Absences{}}},
		{"rules alone are no route", EndedInput{Assignments: []ipam.Assignment{cart}, Links: []string{"lo"}, Routes: []PodRoute{route(cart, "")}, Absent: Absences{cart.Sandbox: long}},
			EndedResult{Ended: []ipam.Assignment{cart}, Absent: Absences{cart.Sandbox: long}}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			row.in.Now, row.in.HashOf = morning, hashOf
			before := maps.Clone(row.in.Absent)
			if diff := cmp.Diff(row.want, Ended(row.in), asValues); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if !maps.Equal(before, row.in.Absent) {
				t.Error("the input was changed")
			}
		})
	}
}

// Random pods come and go, with checks at any time. An allocation ends only if its link was
// missing in all checks of the last EndedGap, at least two, and it does end if checks
// continue.
func TestEnded_RandomChecks(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 5))
		now := morning
		var all []ipam.Assignment
		links := map[string]bool{"lo": true}
		missing := map[ipam.Sandbox][]time.Time{} // checks since the link was last seen
		var absent Absences
		check := func() {
			res := Ended(EndedInput{Now: now, Assignments: all, Links: slices.Collect(maps.Keys(links)), HashOf: hashOf, Absent: absent})
			absent = res.Absent
			for _, a := range all {
				if links[link(a.Pod.Name)] {
					missing[a.Sandbox] = nil
				} else {
					missing[a.Sandbox] = append(missing[a.Sandbox], now)
				}
			}
			for _, a := range res.Ended {
				checks := missing[a.Sandbox]
				if links[link(a.Pod.Name)] || len(checks) < 2 || now.Sub(checks[0]) < EndedGap || now.Sub(a.AssignedAt) < LinkDelay {
					t.Fatalf("seed %d: %s ended after %v, checks %v", seed, a.Pod.Name, now.Sub(a.AssignedAt), checks)
				}
				all = slices.DeleteFunc(all, func(b ipam.Assignment) bool { return a.Sandbox == b.Sandbox })
			}
		}
		for i := range 200 {
			now = now.Add(time.Duration(r.IntN(20_000)) * time.Millisecond)
			switch name := fmt.Sprint("pod-", r.IntN(12)); r.IntN(5) {
			case 0:
				a := allocation(name, fmt.Sprint("c", i), "10.0.0.9", 0)
				a.AssignedAt = now
				all = append(all, a)
			case 1:
				links[link(name)] = true
			case 2:
				delete(links, link(name))
			default:
				check()
			}
		}
		clear(links)
		links["lo"] = true
		for range 3 {
			now = now.Add(LinkDelay)
			check()
		}
		if len(all) > 0 {
			t.Fatalf("seed %d: %d allocations never end", seed, len(all))
		}
	}
}
