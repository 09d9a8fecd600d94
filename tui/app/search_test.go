package app

import (
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
)

// searching is the app on a fleet with every kind of node, in namespace shop.
func searching(t *testing.T) *bench {
	t.Helper()
	b := newBench(t, pagetest.Fleet(), func(o *Options) { o.Namespace = "shop" })
	for _, node := range []string{pagetest.Plain, pagetest.Prefixes} { // the others have not reported their addresses
		n := b.fleet.View().Node(node).NodeIPAM
		n.ENIs = b.fleet.Documents(node, watch.WantENIs, watch.Query{}).ENIs
		n.Object.InternalIP = map[string]string{pagetest.Plain: "10.0.3.17"}[node]
		b.fleet.Put(n)
	}
	b.resize(120, 40)
	b.change()
	return b
}

// answerAll answers the outstanding requests of the app and its pages.
func (b *bench) answerAll(t *testing.T) {
	t.Helper()
	for range 4 {
		reads := b.reads
		b.reads = nil
		for _, q := range reads {
			d := b.fleet.Documents(q.Node, q.Want, q.Query)
			if d.ClusterPods != nil {
				d.ClusterPods.Pods = slices.DeleteFunc(d.ClusterPods.Pods, func(p watch.Pod) bool { return !q.Query.Find.Matches(p) })
			}
			b.send(pages.Loaded{ID: q.ID, Want: q.Want, Detail: d})
		}
		b.run(b.page().Update(b.context(), pages.Changed{}))
	}
}

// TestOnly: the screen of pods starts with those of a namespace, until the filter is changed.
func TestOnly(t *testing.T) {
	t.Parallel()
	b := newBench(t, pagetest.Fleet(), func(o *Options) { o.Only = "kube-system" })
	b.resize(120, 40)
	b.change()
	b.run(b.jump("pods"))
	b.answerAll(t)
	if got := listOf(b.page()).Filter(); got != "namespace=kube-system" {
		t.Errorf("filter %q", got)
	}
	b.sees(t, "kube-system/kube-proxy-7k2p1")
	b.lacks(t, "shop/waits")
	b.press("esc")
	b.sees(t, "shop/waits")
	b.run(b.jump("overview"))
	if got := listOf(b.page()).Filter(); got != "" {
		t.Errorf("the overview has the filter %q", got)
	}
}

// TestSearch types or pastes a pod or an address into the palette and arrives where it is.
func TestSearch(t *testing.T) {
	t.Parallel()
	type open = pages.Open
	for name, x := range map[string]struct {
		typed, pasted string
		want          open
		sees          string
	}{
		"an address of a pod":         {typed: "ip 10.0.3.42", want: open{Screen: "pod", Node: pagetest.Plain, Pod: "shop/cart-7d9f-1", IP: "10.0.3.42"}, sees: "eni-0a1b2c3d4e5f60718"},
		"an address alone":            {typed: "10.0.3.42", want: open{Screen: "pod", Node: pagetest.Plain, Pod: "shop/cart-7d9f-1", IP: "10.0.3.42"}},
		"a pasted address":            {pasted: "  10.0.3.42\n", want: open{Screen: "pod", Node: pagetest.Plain, Pod: "shop/cart-7d9f-1", IP: "10.0.3.42"}},
		"an address pasted behind ip": {typed: "ip ", pasted: "10.0.3.42\n", want: open{Screen: "pod", Node: pagetest.Plain, Pod: "shop/cart-7d9f-1", IP: "10.0.3.42"}},
		"a free address":              {typed: "ip 10.0.7.62", want: open{Screen: "eni", Node: pagetest.Prefixes, ENI: "eni-0d4e5f60718293a4b", IP: "10.0.7.62"}, sees: "▸ 10.0.7.62"},
		"the node's own address":      {typed: "ip 10.0.3.17", want: open{Screen: "node", Node: pagetest.Plain}, sees: "is the address of the node"},
		"an address of no node":       {typed: "ip 10.0.200.9", want: open{Screen: "pod", IP: "10.0.200.9"}, sees: "No node read so far holds 10.0.200.9; the addresses of 7 of 10"},
		"an address of a branch ENI":  {typed: "ip 10.0.12.199", want: open{Screen: "pod", IP: "10.0.12.199"}, sees: "pay/ledger-0"},
		"no address":                  {typed: "ip 10.0.3", want: open{Screen: "overview"}, sees: "not an IP address: 10.0.3"},
		"a pod":                       {typed: "pod web/front-00", want: open{Screen: "pod", Node: pagetest.Prefixes, Pod: "web/front-00"}},
		"a pasted pod":                {pasted: " web/front-00 ", want: open{Screen: "pod", Node: pagetest.Prefixes, Pod: "web/front-00"}},
		"a pod of the namespace":      {typed: "pod cart-7d9f-1", want: open{Screen: "pod", Node: pagetest.Plain, Pod: "shop/cart-7d9f-1"}},
		"as kubectl writes it":        {typed: "pod pod/cart-7d9f-1", want: open{Screen: "pod", Node: pagetest.Plain, Pod: "shop/cart-7d9f-1"}},
		"a pod of another namespace":  {typed: "pod front-00", want: open{Screen: "pod", Node: pagetest.Prefixes, Pod: "web/front-00"}},
		"a pod without an address":    {typed: "pod shop/waits", want: open{Screen: "pod", Pod: "shop/waits"}, sees: "on " + pagetest.Plain},
		"a pod without a node":        {typed: "pod unbound", want: open{Screen: "pod", Pod: "shop/unbound"}, sees: "Not scheduled to a node yet. Unschedulable"},
		"the beginning of a name":     {typed: "pod shop/wai", want: open{Screen: "pod", Pod: "shop/waits"}},
		"the beginning of several":    {typed: "pod shop/cart", want: open{Screen: "pods", Filter: "pod=shop/cart*"}, sees: "shop/cart-7d9f-3"},
		"no pod":                      {typed: "pod shop/none", want: open{Screen: "pod", Pod: "shop/none"}, sees: "Kubernetes has no such pod."},
		"no pod anywhere":             {typed: "pod none", want: open{Screen: "overview"}, sees: "no pod is named none; the addresses of 7 nodes have not been read"},
		"no name":                     {typed: "pod a/b/c", want: open{Screen: "overview"}, sees: "a pod is named as NAMESPACE/NAME"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := searching(t)
			b.press(":")
			b.typed(x.typed)
			if x.pasted != "" {
				b.send(tea.PasteMsg{Content: x.pasted})
			}
			b.press("enter")
			b.answerAll(t)
			if got := b.router.top().open; got != x.want {
				t.Errorf("leads to %+v, want %+v", got, x.want)
			}
			b.sees(t, x.sees)
		})
	}
}

// TestSearch_WithoutKubernetes finds the pods that nodes reported by a prefix of the name.
func TestSearch_WithoutKubernetes(t *testing.T) {
	t.Parallel()
	b := searching(t)
	ask := b.fleet.Documents
	b.fleet.Documents = func(node string, want watch.Want, q watch.Query) watch.Detail {
		if want == watch.WantClusterPods {
			return watch.Detail{Errors: map[watch.Want]document.NodeError{want: {Reason: introspect.ReasonForbidden}}}
		}
		return ask(node, want, q)
	}
	b.press(":")
	b.typed("pod web/front-1")
	b.press("enter")
	b.answerAll(t)
	b.sees(t, "web/front-15", "missing permission: list pods")
	if got := b.router.top().open.Filter; got != "pod=web/front-1*" {
		t.Errorf("filtered by %q", got)
	}
	b.press(":")
	b.typed("pod web/front-15")
	b.press("enter")
	if got := b.stackNames(); got != "overview>pods>pod" {
		t.Errorf("at %s", got)
	}
	b.press("esc", ":")
	b.typed("ip 192.0.2.1")
	b.press("enter")
	b.answerAll(t)
	b.sees(t, "missing permission: list pods")
}

// TestPodsAreGathered: the filter and the order of the pod list apply to all pods, even while
// the app is paused.
func TestPodsAreGathered(t *testing.T) {
	t.Parallel()
	b := searching(t)
	b.press("6")
	b.answerAll(t)
	b.press("p", "/")
	b.typed("state=waiting")
	b.press("enter")
	if _, cells := b.list().Cells(); len(cells) != 3 || !strings.HasPrefix(cells[0][0], "pay/") {
		t.Errorf("%q", cells)
	}
	b.press("o")
	if _, cells := b.list().Cells(); len(cells) != 3 {
		t.Errorf("%q", cells)
	}
}

// TestPalette_Names: a node is opened by its name or a prefix of it. Names similar to the input
// are suggested: nodes, screens, commands and contexts.
func TestPalette_Names(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]struct{ at, sees string }{
		"node " + pagetest.Plain:                    {"node", pages.Host(pagetest.Plain)},
		"node " + pages.Host(pagetest.Plain):        {"node", pages.Host(pagetest.Plain)},
		"node ip-10-0-":                             {"overview", "ip-10-0- matches "},
		"node " + pages.Host(pagetest.Plain) + "xx": {"overview", "did you mean " + pagetest.Plain + "?"},
		"node":      {"overview", "node needs a NAME"},
		"ctx gren":  {"overview", "no match for ctx gren; did you mean ctx green?"},
		"dotcor":    {"overview", "no match for dotcor; did you mean doctor?"},
		"qqqqqqqqq": {"overview", "no match for qqqqqqqqq "},
	} {
		b := searching(t)
		b.o.Contexts = []string{"blue", "green"}
		b.press(":")
		b.typed(typed)
		b.press("enter")
		if at := b.router.top().open; at.Screen != want.at || at.Screen == "node" && at.Node != pagetest.Plain {
			t.Errorf("%q leads to %+v", typed, at)
		}
		b.sees(t, want.sees)
	}
}
