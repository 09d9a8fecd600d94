package e2e_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/capacity/limits"
	"cnictl/daemon/api/introspect"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
)

// smallCards is an instance type with three network cards of two ENIs each; an ENI has three
// addresses for pods.
var smallCards = limits.Instance{
	Type: "lab3.small", MaxENIs: 2, IPv4PerENI: 4, IPv6PerENI: 4, Hypervisor: "nitro",
	Cards: []limits.Card{{Index: 0, MaxENIs: 2}, {Index: 1, MaxENIs: 2}, {Index: 2, MaxENIs: 2}},
}

var multiNIC = map[string]string{"ENABLE_MULTI_NIC": "true", "WARM_IP_TARGET": "1", "MINIMUM_IP_TARGET": "1", "IP_COOLDOWN_PERIOD": "0", "CNI_ADD_WAIT": "5s"}

func with(env map[string]string, more ...string) map[string]string {
	out := map[string]string{}
	for key, value := range env {
		out[key] = value
	}
	for _, m := range more {
		key, value, _ := strings.Cut(m, "=")
		out[key] = value
	}
	return out
}

// TestModes_MultiNIC: pods that request it get an address of each network card that serves
// pods, or none at all.
func TestModes_MultiNIC(t *testing.T) {
	t.Parallel()
	t.Run("pods", testMultiNICPods)
	t.Run("all or nothing", testMultiNICAllOrNothing)
	t.Run("efa-only card", testMultiNICEFAOnly)
	t.Run("prefixes", testMultiNICPrefixes)
	t.Run("off", testMultiNICOff)
}

func multiNICCluster(t *testing.T) (*cluster, *member) {
	c := newCluster(t, fakeaws.Options{Types: []limits.Instance{smallCards}})
	return c, c.join(fakeaws.InstanceSpec{Type: smallCards.Type})
}

// spread checks that a pod has one address of each of the cards, with the route tables of
// the addresses' ENIs.
func (s *sandboxOf) spread(cards ...int) {
	s.m.c.t.Helper()
	var got []int
	for i, a := range s.addresses() {
		e := s.m.owner(a)
		got = append(got, e.Attachment.Card)
		at, table := s.reply.Allocations[i], e.Attachment.Device+1
		switch {
		case e.Attachment.Card > 0:
			table = 10000 + e.Attachment.Device + 100*e.Attachment.Card
		case e.Attachment.Device == 0:
			table = 254
		}
		if main := table == 254 && at.RouteTable == 0; at.Device != int32(e.Attachment.Device) || at.RouteTable != int32(table) && !main {
			s.m.c.t.Errorf("%s has %+v on card %d device %d", s.pod.Name, at, e.Attachment.Card, e.Attachment.Device)
		}
	}
	if !slices.Equal(got, cards) {
		s.m.c.t.Errorf("%s has addresses of the cards %v, want %v: %+v", s.pod.Name, got, cards, s.reply)
	}
}

func testMultiNICPods(t *testing.T) {
	t.Parallel()
	c, m := multiNICCluster(t)
	m.start(multiNIC)
	both := []*sandboxOf{m.ask("every-0", true), m.ask("every-1", true)}
	one := m.ask("one", false)
	both[0].spread(0, 1, 2)
	both[1].spread(0, 1, 2)
	one.spread(0)

	// The other cards have their own files, in upstream's format.
	for card, path := range []string{node.Checkpoint, strings.Replace(node.Checkpoint, ".json", "-nic-1.json", 1), strings.Replace(node.Checkpoint, ".json", "-nic-2.json", 1)} {
		text := m.file(path)
		want := len(both)
		if card == 0 {
			want++
		}
		if !strings.HasPrefix(text, `{"version":"vpc-cni-ipam/1"`) || strings.Count(text, `"containerID"`) != want {
			t.Errorf("%s: %s", path, text)
		}
		for _, p := range both {
			entry := `"ipv4":"` + p.addresses()[card].String() + `"`
			if !strings.Contains(text, entry) || strings.Count(text, `"interfacesCount":3`) != len(both) {
				t.Errorf("%s lacks %s with three interfaces: %s", path, entry, text)
			}
		}
	}
	var shown introspect.ENIs
	c.get(m.Node, introspect.PathENIs, &shown)
	if shown["0"].AssignedIPs != 3 || shown["1"].AssignedIPs != 2 || shown["2"].AssignedIPs != 2 {
		t.Errorf("shown are %+v", shown)
	}
	state, err := m.KernelState()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range m.enis() {
		if e.Attachment.Card == 0 {
			continue
		}
		if rule := "from " + e.PrimaryIP.String() + " lookup " + map[int]string{1: "1010", 2: "1020"}[e.Attachment.Card]; !strings.Contains(state.Rules, rule) {
			t.Errorf("no rule %q for card %d in\n%s", rule, e.Attachment.Card, state.Rules)
		}
	}

	m.restart(multiNIC)
	for _, p := range append(both, one) {
		if diff := cmp.Diff(p.reply, p.again()); diff != "" {
			t.Errorf("%s after a restart (-before +after):\n%s", p.pod.Name, diff)
		}
	}
	for _, p := range append(both, one) {
		if r := p.end(); !r.Success || !slices.Equal(r.Allocations, p.reply.Allocations) {
			t.Errorf("DEL of %s: %+v", p.pod.Name, r)
		}
	}
	for _, card := range []string{".json", "-nic-1.json", "-nic-2.json"} {
		if text := m.file(strings.Replace(node.Checkpoint, ".json", card, 1)); strings.Contains(text, "containerID") {
			t.Errorf("left in %s: %s", card, text)
		}
	}
}

// testMultiNICAllOrNothing fills card 0: then a pod with an interface per card gets nothing,
// while an ordinary one gets an address of the next card.
func testMultiNICAllOrNothing(t *testing.T) {
	t.Parallel()
	c, m := multiNICCluster(t)
	m.start(multiNIC)
	var pods []*sandboxOf
	for i := range 2 * (smallCards.IPv4PerENI - 1) {
		c.settled(m.Node) // while card 0 grows, an ordinary pod gets an address of the next card
		p := m.ask("fills-"+string(rune('a'+i)), false)
		p.spread(0)
		pods = append(pods, p)
	}
	c.settled(m.Node)
	if p := m.ask("every", true); p.reply.Success || p.reply.Cause != "pool-full" || len(p.reply.Allocations) > 0 {
		t.Errorf("a pod with an interface per card while card 0 is full: %+v", p.reply)
	}
	m.ask("next", false).spread(1)
	// The failed pod has not kept addresses on the other cards.
	for _, card := range []string{"-nic-1.json", "-nic-2.json"} {
		want := map[string]int{"-nic-1.json": 1}[card]
		if text := m.file(strings.Replace(node.Checkpoint, ".json", card, 1)); strings.Count(text, "containerID") != want {
			t.Errorf("%s: %s", card, text)
		}
	}
	if r := pods[0].end(); !r.Success {
		t.Fatal(r)
	}
	m.ask("again", true).spread(0, 1, 2)
}

func testMultiNICEFAOnly(t *testing.T) {
	t.Parallel()
	c, m := multiNICCluster(t)
	efa, err := c.world.CreateENI(fakeaws.ENISpec{SubnetID: c.subnet.ID, Type: "efa-only"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.world.AttachENI(fakeaws.AttachSpec{ENIID: efa.ID, InstanceID: m.InstanceID, Card: 1, Device: 0}); err != nil {
		t.Fatal(err)
	}
	m.start(multiNIC)
	m.ask("every", true).spread(0, 2)
	for _, e := range m.enis() {
		if e.Attachment.Card == 1 && e.ID != efa.ID {
			t.Errorf("an ENI was attached to a card that serves no pods: %+v", e)
		}
	}
	if left, _ := c.world.ENI(efa.ID); len(left.Tags) > 0 || left.Attachment.DeleteOnTermination {
		t.Errorf("the efa-only ENI was changed: %+v", left)
	}
}

// testMultiNICPrefixes: upstream releases the prefix of an idle card and requests it again
// every half minute. Here a settled plan does not change.
func testMultiNICPrefixes(t *testing.T) {
	t.Parallel()
	c, m := multiNICCluster(t)
	m.start(with(multiNIC, "ENABLE_PREFIX_DELEGATION=true"))
	p := m.ask("every", true)
	p.spread(0, 1, 2)
	p.end()
	c.settled(m.Node)
	var plan introspect.NodePlan
	c.get(m.Node, introspect.PathPlan, &plan)
	for _, e := range m.enis() {
		if len(e.Prefixes) > 1 {
			t.Errorf("card %d: %v", e.Attachment.Card, e.Prefixes)
		}
	}
	for _, a := range plan.Actions {
		t.Errorf("an idle node is about to %+v", a)
	}
}

// testMultiNICOff: without the feature the request is refused. Pods that already have an
// interface per card keep them until their DEL.
func testMultiNICOff(t *testing.T) {
	t.Parallel()
	c, m := multiNICCluster(t)
	m.start(multiNIC)
	p := m.ask("every", true)
	p.spread(0, 1, 2)
	off := with(multiNIC, "ENABLE_MULTI_NIC=false")
	m.restart(off)
	if r := m.ask("refused", true).reply; r.Success || r.Cause != "multi-nic-disabled" || r.Transient || !strings.Contains(r.Detail, "nicConfig") {
		t.Errorf("with the feature off: %+v", r)
	}
	other := m.ask("other", false)
	other.spread(0)
	if slices.Contains(p.addresses(), other.addresses()[0]) {
		t.Errorf("%v is another pod's", other.addresses())
	}
	for _, a := range p.addresses() {
		m.owner(a)
	}
	// A second start finds the same state: the files of the cards are kept.
	m.restart(off)
	if r := p.end(); !r.Success || len(r.Allocations) != len(p.reply.Allocations) {
		t.Errorf("DEL: %+v", r)
	}
	if r := c.wireDel(m.Node, p.request); !r.Unknown {
		t.Errorf("second DEL: %+v", r)
	}
}
