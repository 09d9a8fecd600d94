package e2e_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/checkpoint"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/netnames"
	"cnictl/testenv"
	"cnictl/testenv/node"
)

// restoredWithin bounds the wait for what a daemon does at its start or within a second. State that it
// repaired only later, with the resync after a minute, would be lost on a node that crashes again.
const restoredWithin = 45 * time.Second

// intact compares kernel, EC2 and file with the pods that must exist: each has its address,
// link, route, rules and entry, nothing else exists, and the daemon shows what EC2 has.
func (l *lab) intact(n *node.Node, pods []*node.Pod) (ok bool) {
	l.t.Helper()
	return l.intactWithin(n, pods, restoredWithin)
}

// intactWithin is intact with another time limit.
func (l *lab) intactWithin(n *node.Node, pods []*node.Pod, most time.Duration) (ok bool) {
	l.t.Helper()
	ok = true
	wrong := func(format string, args ...any) {
		l.t.Helper()
		l.t.Errorf(format, args...)
		ok = false
	}
	l.settled(n)
	byAddress := map[netip.Addr]string{}
	for _, p := range pods {
		if other, twice := byAddress[p.IP]; twice {
			wrong("%s was given twice, to %s and to %s", p.IP, other, p.Name)
		}
		byAddress[p.IP] = p.Name
	}
	for _, same := range []struct {
		what      string
		want, got func() []string
	}{
		{"rules, routes, links, namespaces and checkpoint entries of pods", func() []string { return l.podState(pods) }, func() []string { return l.podStateNow(n) }},
		{"routes and rules of ENIs", func() []string { return l.eniState(n) }, func() []string { return l.eniStateNow(n) }},
		{"ENIs that nothing is attached to", func() []string { return nil }, l.unattached},
		{"CIDRs, EC2's and the daemon's", func() []string { return l.cidrs(n) }, func() []string { return l.cidrsShown(n) }},
		{"addresses assigned", func() []string { return texts(maps.Keys(byAddress)) }, func() []string { return texts(maps.Keys(l.assigned(n))) }},
		{"temporary files", func() []string { return nil }, func() []string { return l.temporaries(n) }},
	} {
		ok = agree(l.t, most, same.what, same.want, same.got) && ok
	}
	for _, p := range pods {
		if err := n.Ping(p.IP, testenv.Left(l.t)); err != nil {
			wrong("ping %s: %v", p.Name, err)
		}
	}
	return ok
}

// agree waits until two lists are equal, and reports whether they were in time.
func agree(t *testing.T, most time.Duration, what string, want, got func() []string) bool {
	t.Helper()
	return testenv.Within(t, most, what, func() {
		testenv.EventuallyErr(t, what, func() error {
			w, g := want(), got()
			slices.Sort(w)
			slices.Sort(g)
			if slices.Equal(w, g) {
				return nil
			}
			return fmt.Errorf("(- want, + got):\n%s", cmp.Diff(w, g))
		})
	})
}

func texts[T fmt.Stringer](all func(func(T) bool)) (out []string) {
	for v := range all {
		out = append(out, v.String())
	}
	return out
}

// podState returns what node.Leftovers would return for pods that are up.
func (l *lab) podState(pods []*node.Pod) (out []string) {
	l.t.Helper()
	for _, p := range pods {
		eni, ok := l.world.OwnerOf(p.IP)
		if !ok {
			l.t.Errorf("%s has %s, which EC2 gave to no ENI", p.Name, p.IP)
		}
		link := netnames.HostVeth("eni", p.Namespace, p.Name, 0)
		out = append(out,
			fmt.Sprintf("rule %d: from <nil> to %s/32 lookup %d", netnames.RuleToPod, p.IP, netnames.MainTable),
			fmt.Sprintf("route %s/32 dev %s table %d", p.IP, link, netnames.MainTable),
			"link "+link,
			"network namespace "+path.Base(p.Path),
			fmt.Sprintf("allocation of %s to container %.12s", p.IP, p.ContainerID))
		if table := netnames.RouteTable(eni.Attachment.Card, eni.Attachment.Device); !netnames.IsMain(table) {
			out = append(out, fmt.Sprintf("rule %d: from %s/32 to <nil> lookup %d", netnames.RuleFromPod, p.IP, table))
		}
	}
	return out
}

func (l *lab) podStateNow(n *node.Node) []string {
	l.t.Helper()
	ctx, cancel := context.WithCancel(l.t.Context())
	cancel() // check once
	state, err := n.Leftovers(ctx)
	if err != nil {
		l.t.Fatal(err)
	}
	return state
}

var (
	eniRule    = regexp.MustCompile(`(?m)^` + strconv.Itoa(netnames.RuleFromENI) + `:\s+(.*\S)`)
	tableRoute = regexp.MustCompile(`(?m)^default via .* table (\d+)\b`)
)

// eniState returns the expected rule and default route of each secondary ENI.
func (l *lab) eniState(n *node.Node) (out []string) {
	for _, e := range l.world.ENIsOf(n.InstanceID) {
		if table := netnames.RouteTable(e.Attachment.Card, e.Attachment.Device); !netnames.IsMain(table) {
			out = append(out, fmt.Sprintf("from %s lookup %d", e.PrimaryIP, table), fmt.Sprintf("default route in table %d", table))
		}
	}
	return out
}

func (l *lab) eniStateNow(n *node.Node) (out []string) {
	l.t.Helper()
	for _, m := range eniRule.FindAllStringSubmatch(l.ip(n, "rule"), -1) {
		out = append(out, m[1])
	}
	for _, m := range tableRoute.FindAllStringSubmatch(l.ip(n, "route", "show", "table", "all"), -1) {
		out = append(out, "default route in table "+m[1])
	}
	return out
}

// cidrs lists the CIDRs of the node's ENIs in EC2.
func (l *lab) cidrs(n *node.Node) (out []string) {
	for _, e := range l.world.ENIsOf(n.InstanceID) {
		for _, a := range e.SecondaryIPs {
			out = append(out, e.ID+" "+a.String()+"/32")
		}
		for _, p := range e.Prefixes {
			out = append(out, e.ID+" "+p.String())
		}
	}
	return out
}

func (l *lab) cidrsShown(n *node.Node) (out []string) {
	l.t.Helper()
	var shown introspect.ENIs
	l.get(n, introspect.PathENIs, &shown)
	for id, e := range shown["0"].ENIs {
		for cidr := range e.AvailableIPv4Cidrs {
			out = append(out, id+" "+cidr)
		}
	}
	return out
}

// temporaries lists the temporary files beside the checkpoint that a write may have left.
func (l *lab) temporaries(n *node.Node) (out []string) {
	l.t.Helper()
	dir, err := n.Open(filepath.Dir(checkpointPath), os.O_RDONLY, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, path.Base(checkpointPath)) && name != path.Base(checkpointPath) {
			out = append(out, name)
		}
	}
	return out
}

// age makes every entry of the checkpoint five minutes older, as if the daemon had been down
// for that long: the daemon spares young entries, whose pods may not have their links yet.
func (l *lab) age(n *node.Node) {
	l.t.Helper()
	f, err := n.Open(checkpointPath, os.O_RDWR, 0)
	if os.IsNotExist(err) {
		return
	}
	if err != nil {
		l.t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		l.t.Fatal(err)
	}
	entries, err := checkpoint.Decode(data)
	if err != nil {
		l.t.Fatalf("the checkpoint that a killed daemon left: %v", err)
	}
	var rows [][]byte
	for _, e := range entries {
		e.AllocatedAt = e.AllocatedAt.Add(-5 * time.Minute)
		rows = append(rows, checkpoint.EncodeEntry(e))
	}
	aged := checkpoint.Append(nil, slices.Values(rows))
	if _, err := f.WriteAt(aged, 0); err != nil {
		l.t.Fatal(err)
	}
	if err := f.Truncate(int64(len(aged))); err != nil {
		l.t.Fatal(err)
	}
}

// size is the size of a pool that has converged.
type size struct{ enis, cidrs int }

func (l *lab) size(n *node.Node) size {
	return size{len(l.world.ENIsOf(n.InstanceID)), len(l.cidrs(n))}
}

// linksGone waits until the kernel has removed the links of deleted pods.
func (l *lab) linksGone(n *node.Node, pods ...*node.Pod) {
	l.t.Helper()
	for _, p := range pods {
		link := netnames.HostVeth("eni", p.Namespace, p.Name, 0)
		testenv.Eventually(l.t, "the end of link "+link, func() bool { return !slices.Contains(l.podStateNow(n), "link "+link) })
	}
}
