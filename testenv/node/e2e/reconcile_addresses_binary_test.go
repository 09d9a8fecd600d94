package e2e_test

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/introspect/client"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
)

// The tests of reconcile_*_binary_test.go change EC2's world behind a running daemon.
// Its instance metadata never catches up, which makes the daemon read EC2 as early as it can,
// fifteen seconds after its start, and then about once a minute.
const lagging = time.Hour

// noticedWithin bounds how long the daemon takes to notice a change in EC2: a minute with
// jitter, if its first request came too early.
const noticedWithin = 80 * time.Second

// confirmed bounds how long it takes to conclude that something is gone: half a minute after it
// was first missed, and more on a busy machine.
const confirmed = time.Minute

// watched is a node whose daemon reads EC2 often.
type watched struct {
	*lab
	n   *node.Node
	env map[string]string
	c   *client.Client
}

func newWatched(t *testing.T, instanceType string, env map[string]string) watched {
	t.Helper()
	l := newLab(t, fakeaws.Options{MetadataLag: lagging})
	env = maps.Clone(env)
	if env == nil {
		env = map[string]string{}
	}
	env["AWS_VPC_K8S_CNI_LOGLEVEL"] = "INFO" // a line for each of the test's requests would bury the others
	n := l.boot(instanceType, env)
	c, _ := l.introspection(n)
	return watched{l, n, env, c}
}

// events reads all events of the daemon.
func (s watched) events() []introspect.Event {
	s.t.Helper()
	doc, err := s.c.Events(s.t.Context(), client.Cursor{}, client.EventsOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return doc.Items
}

// awaitEvent waits for an event about an ENI or a range of addresses.
func (s watched) awaitEvent(within time.Duration, kind introspect.EventKind, eniID string, cidr netip.Prefix) introspect.Event {
	s.t.Helper()
	var found introspect.Event
	s.within(within, string(kind)+" of "+eniID+" "+cidr.String(), func() bool {
		events := s.events()
		at := slices.IndexFunc(events, func(e introspect.Event) bool {
			return e.Kind == kind && (eniID == "" || e.ENIID == eniID) && (!cidr.IsValid() || slices.Contains(e.CIDRs, cidr))
		})
		if at >= 0 {
			found = events[at]
		}
		return at >= 0
	})
	return found
}

// quiet fails the test if the daemon has reported an event of a kind.
func (s watched) quiet(kinds ...introspect.EventKind) {
	s.t.Helper()
	for _, e := range s.events() {
		if slices.Contains(kinds, e.Kind) {
			s.t.Errorf("the daemon reports %+v", e)
		}
	}
}

// seen waits until the daemon has read the node's ENIs from EC2 the given number of times more.
func (s watched) seen(times int) {
	s.t.Helper()
	asked := func() (n int) {
		for _, c := range s.world.Calls() {
			if c.Action == "DescribeNetworkInterfaces" {
				n++
			}
		}
		return n
	}
	want := asked() + times
	s.within(time.Duration(times)*noticedWithin, "requests to EC2", func() bool { return asked() >= want })
	s.settled(s.n)
}

// takeAway removes an address or a prefix from an ENI and gives it to another owner, so that
// EC2 does not assign it to the node again. The returned function takes it from that owner, and
// optionally returns it to the ENI.
func (s watched) takeAway(eniID string, cidr netip.Prefix) (giveBack func(toENI bool)) {
	s.t.Helper()
	if err := s.world.Unassign(eniID, cidr); err != nil {
		s.t.Fatal(err)
	}
	spec := fakeaws.ENISpec{SubnetID: s.subnet.ID, Description: "somebody else's"}
	back := fakeaws.AssignSpec{}
	if cidr.IsSingleIP() {
		spec.SecondaryIPs, back.Addresses = []netip.Addr{cidr.Addr()}, []netip.Addr{cidr.Addr()}
	} else {
		spec.CIDRs, back.Prefixes = []netip.Prefix{cidr}, []netip.Prefix{cidr}
	}
	other, err := s.world.CreateENI(spec)
	if err != nil {
		s.t.Fatal(err)
	}
	return func(toENI bool) {
		s.t.Helper()
		if err := s.world.DeleteENI(other.ID); err != nil {
			s.t.Fatal(err)
		}
		if !toENI {
			return
		}
		if _, err := s.world.Assign(eniID, back); err != nil {
			s.t.Fatal(err)
		}
	}
}

// shows reports whether the daemon knows a range of addresses.
func (s watched) shows(cidr netip.Prefix) bool {
	s.t.Helper()
	var enis introspect.ENIs
	s.get(s.n, introspect.PathENIs, &enis)
	for _, e := range enis["0"].ENIs {
		if _, ok := e.AvailableIPv4Cidrs[cidr.String()]; ok {
			return true
		}
	}
	return false
}

// avoid adds pods and checks that none gets an address in a range.
func (s watched) avoid(cidr netip.Prefix, prefix string, count int) []*node.Pod {
	s.t.Helper()
	pods := s.mustAdd(s.n, prefix, count, 4)
	for _, p := range pods {
		if cidr.Contains(p.IP) {
			s.t.Errorf("%s got %s, which EC2 has taken away", p.Name, p.IP)
		}
	}
	return pods
}

func single(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// freeOf finds a range of an ENI that contains no pod's address.
func (s watched) freeOf(eniID string, pods []*node.Pod) netip.Prefix {
	s.t.Helper()
	e, _ := s.world.ENI(eniID)
	for _, c := range slices.Backward(e.CIDRs()) {
		used := c.Contains(e.PrimaryIP) || slices.ContainsFunc(pods, func(p *node.Pod) bool { return c.Contains(p.IP) })
		if !used {
			return c
		}
	}
	s.t.Fatal("no range is free")
	return netip.Prefix{}
}

// rangeOf finds the ENI and the range that contain an address.
func (s watched) rangeOf(a netip.Addr) (eniID string, cidr netip.Prefix) {
	s.t.Helper()
	e, ok := s.world.OwnerOf(a)
	if !ok {
		s.t.Fatalf("%s is on no ENI", a)
	}
	for _, c := range e.CIDRs() {
		if c.Contains(a) {
			return e.ID, c
		}
	}
	return e.ID, single(a)
}

// logSays checks that a line of the daemon's log contains all the words.
func (s watched) logSays(words ...string) {
	s.t.Helper()
	doc, err := s.c.Logs(s.t.Context(), introspect.LogQuery{Lines: introspect.MaxLogLines})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, line := range doc.Lines {
		all := true
		for _, w := range words {
			all = all && strings.Contains(line, w)
		}
		if all {
			return
		}
	}
	s.t.Errorf("no line of the log says %q", words)
}

// takenAddresses are the rows of TestReconcile_Addresses. The nightly run has more. This one takes
// most of a minute, and nothing less shows that no pod gets an address that EC2 took from another.
var takenAddresses = map[string]func(t *testing.T){
	"of a living pod, addresses": ofLivingPod(singleAddresses),
}

// singleAddresses are the settings of a node with one ENI.
var singleAddresses = env{"MAX_ENI": "1", "IP_COOLDOWN_PERIOD": "1", "CNI_ADD_WAIT": "2s"}

// TestReconcile_Addresses removes addresses and prefixes behind the daemon's back.
func TestReconcile_Addresses(t *testing.T) {
	t.Parallel()
	rowsAtOnce(t, takenAddresses, func(t *testing.T, run func(*testing.T)) { run(t) })
}

// ofLivingPod takes a pod's address, or the prefix that has it, and gives it back.
func ofLivingPod(settings env) func(t *testing.T) {
	return func(t *testing.T) {
		s := newWatched(t, "m5.large", settings)
		pods := s.mustAdd(s.n, "p", 5, 4)
		s.settled(s.n)
		victim := pods[2]
		eni, cidr := s.rangeOf(victim.IP)
		giveBack := s.takeAway(eni, cidr)
		e := s.awaitEvent(noticedWithin, introspect.EventQuarantined, eni, cidr)
		if e.Reason == "" || e.Message == "" {
			t.Errorf("event %+v", e)
		}
		s.logSays(eni, cidr.String(), "not used until that is certain")
		if cidr.IsSingleIP() {
			more := s.avoid(cidr, "more", 4)
			if _, err := s.n.AddPod(node.PodSpec{Namespace: "default", Name: "too-many"}); err == nil {
				t.Error("a tenth pod got an address: nine are left, one of them taken away")
			}
			pods = append(pods, more...)
		} else {
			pods = append(pods, s.avoid(cidr, "more", 16)...)
		}
		held := s.assigned(s.n)
		for _, p := range pods {
			if !held[p.IP] {
				t.Errorf("%s has lost %s", p.Name, p.IP)
			}
		}
		giveBack(true)
		s.awaitEvent(noticedWithin, introspect.EventUnquarantined, eni, cidr)
		s.del(s.n, []*node.Pod{victim}, 1)
		pods = slices.DeleteFunc(pods, func(p *node.Pod) bool { return p == victim })
		if cidr.IsSingleIP() {
			again := s.mustAdd(s.n, "again", 1, 1)[0]
			if again.IP != victim.IP {
				t.Errorf("%s got %s, want %s, the only free one", again.Name, again.IP, victim.IP)
			}
			pods = append(pods, again)
		}
		s.del(s.n, pods, 4)
		s.nothingLeft(s.n)
	}
}
