package e2e_test

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cnictl/testenv"
	"cnictl/testenv/node"
)

func (r *recording) sysctlPaths() []string { paths, _ := r.sysctls(); return paths }

// picture returns the recorded picture.
func (r *recording) picture() picture {
	p := picture{
		rules: r.rules, routes: r.ipv4,
		links:    linkLines(string(r.read("ip-addr.three-pods.txt"))),
		iptables: savedLines(string(r.read("iptables-save.three-pods.txt"))),
		native:   nativeLines(string(r.read("nft-ruleset.three-pods.txt"))),
	}
	paths, values := r.sysctls()
	for i := range paths {
		p.sysctls = append(p.sysctls, paths[i]+" "+values[i])
	}
	for _, pod := range r.pods {
		part := func(kind string) string { return string(r.read("pod-" + pod.name + "." + kind + ".txt")) }
		for _, line := range insideLines(part("addr"), part("route"), part("neigh")) {
			p.inside = append(p.inside, pod.name+": "+line)
		}
	}
	return p
}

// staleNeighbour is the only difference that comes from files recorded at different times.
func (r *recording) staleNeighbour() []difference {
	last := r.pods[len(r.pods)-1].name
	const why = "the pod was added again between the dump of its inside and that of the host: it had a new veth pair then"
	return []difference{{`[-+]pod: ` + last + `: 169\.254\.1\.1 dev eth0 lladdr \S+ PERMANENT`, why}}
}

// sameENIs compares EC2 with the recorded ENIs.
func (r *recording) sameENIs(l *lab, n *node.Node) {
	r.t.Helper()
	enis := l.world.ENIsOf(n.InstanceID)
	if len(enis) != len(r.enis) {
		r.t.Fatalf("%d ENIs, recorded %d", len(enis), len(r.enis))
	}
	for i, e := range enis {
		want := r.enis[i]
		if e.ID != want.ID || e.Attachment.Device != want.DeviceNumber || len(e.SecondaryIPs)+len(e.Prefixes) != len(want.AvailableIPv4Cidrs) {
			r.t.Errorf("ENI %+v, recorded %+v", e, want)
		}
	}
}

// takenOver is a recorded node on which our daemon runs and is idle.
type takenOver struct {
	*lab
	*recording
	n      *node.Node
	pods   []*node.Pod
	before picture
}

func takeOver(t *testing.T, mode string) *takenOver {
	t.Helper()
	o := &takenOver{recording: readRecording(t, mode)}
	o.lab, o.n = o.recording.boot(t)
	o.pods = o.restore(o.lab, o.n)
	o.before = o.picture()
	o.start()
	return o
}

func (o *takenOver) picture() picture {
	o.lab.t.Helper()
	return o.take(o.n, o.sysctlPaths(), o.pods)
}

func (o *takenOver) start() {
	o.lab.t.Helper()
	o.lab.start(o.n, modes[o.mode])
	o.settled(o.n)
}

// newLinks returns the links of the ENIs by which the pool grew.
func (o *takenOver) newLinks() (names []string) {
	for _, e := range o.world.ENIsOf(o.n.InstanceID) {
		if e.Attachment.Device >= len(o.enis) {
			names = append(names, fmt.Sprintf("eth%d", e.Attachment.Device))
		}
	}
	return names
}

// marksDifferences are the differences between our connmark table and upstream's. The chains,
// hooks, priorities and the marking rules are the same.
var marksDifferences = func() []difference {
	const why = "upstream's restore rule overwrites all 32 bits of the packet mark, other agents' among them; ours sets and clears " +
		"the CNI's bit only. Upstream, started again, deletes ours as unknown and installs its own (daemon/internal/hostnet TestMarks_DowngradeAndUpgrade)"
	return []difference{
		{`-nft: counter meta mark set ct mark & 0x00000080`, why},
		{`\+nft: ct mark & 0x00000080 == 0x00000000 meta mark set meta mark & 0xffffff7f`, why},
		{`\+nft: ct mark & 0x00000080 == 0x00000080 meta mark set meta mark \| 0x00000080`, why},
	}
}()

// grown returns the differences that new ENIs cause.
func (o *takenOver) grown() (list []difference) {
	const why = "the pool grows: too few of the recorded addresses are free for WARM_ENI_TARGET, and upstream had not looked yet"
	for _, link := range o.newLinks() {
		list = append(list,
			difference{`\+link: ` + link + ` .*`, why},
			difference{`\+route: (default via \S+|\S+) dev ` + link + ` table \d+( scope link)?`, why},
			difference{`\+route: local \S+ dev ` + link + ` table local .*`, why},
			difference{`\+route: broadcast \S+ dev ` + link + ` table local .*`, why},
			difference{`\+rule: 32765:\s+from \S+ lookup \d+`, why},
		)
	}
	return list
}

// takeoverDifferences returns everything that a start of our daemon changes on an upstream node.
func (o *takenOver) takeoverDifferences() []difference {
	return slices.Concat(o.grown(), marksDifferences)
}

// TestUpgrade_TakesOver starts our daemon on an upstream node: the pods' state does not change,
// and book, file and kernel agree.
func TestUpgrade_TakesOver(t *testing.T) {
	t.Parallel()
	for mode := range modes {
		t.Run(mode, func(t *testing.T) {
			o := takeOver(t, mode)
			after := o.picture()
			compare(t, o.before, after, o.takeoverDifferences()...)
			once(t, after)
			o.holdsThePods()
			for _, p := range o.pods {
				if err := o.n.Ping(p.IP, testenv.Left(t)); err != nil {
					t.Errorf("%s: %v", p.Name, err)
				}
				if p == o.pods[0] { // the pod's own lo is down, as the runtime left it
					continue
				}
				if err := o.n.PingFrom(o.pods[0], p.IP, testenv.Left(t)); err != nil {
					t.Errorf("%s from %s: %v", p.Name, o.pods[0].Name, err)
				}
			}
			// A second start changes nothing.
			o.kill(o.n, 15)
			o.start()
			compare(t, after, o.picture())
			o.holdsThePods()
		})
	}
}

// holdsThePods compares the book and the file with the recorded file.
func (o *takenOver) holdsThePods() {
	o.lab.t.Helper()
	held := o.assigned(o.n)
	if len(held) != len(o.pods) {
		o.lab.t.Errorf("%d addresses are held: %v", len(held), held)
	}
	for _, p := range o.pods {
		if !held[p.IP] {
			o.lab.t.Errorf("%s lost %s", p.Name, p.IP)
		}
	}
	if got, want := entries(o.sh(o.n, "cat "+node.Checkpoint)), entries(string(o.file)); !slices.Equal(got, want) {
		o.lab.t.Errorf("file has\n%s\nwas\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// entries returns the encoded allocations of a file, sorted, since upstream writes them from a
// map in any order.
func entries(file string) []string {
	out := regexp.MustCompile(`\{"networkName":.*?\}\}`).FindAllString(file, -1)
	slices.Sort(out)
	return out
}

// TestUpgrade_NewPodsGetOtherAddresses fills the node: no address of a running pod is assigned
// again.
func TestUpgrade_NewPodsGetOtherAddresses(t *testing.T) {
	t.Parallel()
	for mode := range modes {
		t.Run(mode, func(t *testing.T) {
			o := takeOver(t, mode)
			inside := o.picture().inside
			more := o.mustAdd(o.n, "more", 20, 4)
			taken := map[string]string{}
			for _, p := range slices.Concat(o.pods, more) {
				if other := taken[p.IP.String()]; other != "" {
					t.Errorf("%s has the address %s of %s", p.Name, p.IP, other)
				}
				taken[p.IP.String()] = p.Name
			}
			if got := o.picture().inside; !slices.Equal(got, inside) {
				t.Errorf("inside the old pods (-before +after):\n-%v\n+%v", without(inside, got), without(got, inside))
			}
			o.del(o.n, more, 4)
			o.holdsThePods()
		})
	}
}

// TestUpgrade_RepeatedADD repeats the ADD of a recorded sandbox: the reply is upstream's, byte
// for byte.
func TestUpgrade_RepeatedADD(t *testing.T) {
	t.Parallel()
	for mode := range modes {
		t.Run(mode, func(t *testing.T) {
			o := takeOver(t, mode)
			last := o.pods[len(o.pods)-1]
			for _, p := range o.pods {
				want := p.Result
				if p == last {
					want = o.read("add-again.json")
				}
				r, err := o.n.RunPlugin(p, "ADD", nil)
				if err != nil || !bytes.Equal(r.Stdout, want) {
					t.Errorf("%s: %v\n%s\nwant\n%s", p.Name, err, r.Stdout, want)
				}
				if err := o.n.Ping(p.IP, testenv.Left(t)); err != nil {
					t.Errorf("%s: %v", p.Name, err)
				}
			}
			o.holdsThePods()
		})
	}
}

// TestUpgrade_DEL deletes the recorded pods in different ways: exactly their state is removed.
func TestUpgrade_DEL(t *testing.T) {
	t.Parallel()
	for mode := range modes {
		t.Run(mode, func(t *testing.T) {
			o := takeOver(t, mode)
			left := slices.Clone(o.file)
			for i, row := range []struct {
				how  string
				prev []byte
				down bool
			}{
				{"by recorded prevResult", o.pods[2].Result, false},
				{"without prevResult", nil, false},
				{"by recorded prevResult, daemon killed", o.pods[0].Result, true},
			} {
				p := o.pods[2-i]
				if row.down {
					o.kill(o.n, 9)
				}
				o.deleteOne(row.how, p, row.prev)
				if row.down {
					o.start()
				}
				left = withoutEntry(left, p.ContainerID)
				testenv.Eventually(o.lab.t, row.how+": the file without the pod", func() bool {
					return slices.Equal(entries(o.sh(o.n, "cat "+node.Checkpoint)), entries(string(left)))
				})
				if o.assigned(o.n)[p.IP] {
					t.Errorf("%s: %s is still held", row.how, p.IP)
				}
				if i == 0 {
					o.asRecordedWithoutOne()
				}
				// A DEL may be repeated, with whatever result the runtime has.
				for _, prev := range [][]byte{p.Result, nil} {
					if r, err := o.n.RunPlugin(p, "DEL", prev); err != nil || len(r.Stdout) > 0 {
						t.Errorf("%s, again: %v, %q", row.how, err, r.Stdout)
					}
				}
			}
			o.nothingLeft(o.n)
		})
	}
}

// deleteOne deletes one pod and checks that exactly the pod's state was removed.
func (o *takenOver) deleteOne(how string, p *node.Pod, prev []byte) {
	o.lab.t.Helper()
	others := slices.DeleteFunc(slices.Clone(o.pods), func(q *node.Pod) bool { return q == p || q.Netns == nil })
	paths := slices.DeleteFunc(o.sysctlPaths(), func(path string) bool { return strings.Contains(path, o.hostLink(p)) })
	before := o.take(o.n, paths, others)
	r, err := o.n.RunPlugin(p, "DEL", prev)
	if err != nil || len(r.Stdout) > 0 {
		o.lab.t.Errorf("%s: %v, printed %q", how, err, r.Stdout)
	}
	if err := o.n.RemoveSandbox(p); err != nil {
		o.lab.t.Fatal(err)
	}
	link := o.hostLink(p)
	testenv.Eventually(o.lab.t, "the end of link "+link, func() bool { return !strings.Contains(o.sh(o.n, "ip link"), link) })
	own := []difference{
		{`-rule: 512:\s+from all to ` + regexp.QuoteMeta(p.IP.String()) + ` lookup main`, "to the pod"},
		{`-route: ` + regexp.QuoteMeta(p.IP.String()) + ` dev ` + link + ` scope link`, "to the pod"},
		{`-link: ` + link + ` .*`, "the host's end"},
	}
	if slices.ContainsFunc(before.rules, func(s string) bool { return strings.Contains(s, "from "+p.IP.String()+" ") }) {
		own = append(own, difference{`-rule: 1536:\s+from ` + regexp.QuoteMeta(p.IP.String()) + ` lookup \d+`, "from a pod on a further ENI"})
	}
	compare(o.lab.t, before, o.take(o.n, paths, others), own...)
}

func (o *takenOver) hostLink(p *node.Pod) string {
	for _, q := range o.recording.pods {
		if q.containerID == p.ContainerID {
			return q.host.name
		}
	}
	return "none"
}

func withoutEntry(file []byte, containerID string) []byte {
	kept := slices.DeleteFunc(entries(string(file)), func(e string) bool { return strings.Contains(e, containerID) })
	return []byte(strings.Join(kept, ","))
}

// asRecordedWithoutOne compares the node with what upstream left after the same DEL.
func (o *takenOver) asRecordedWithoutOne() {
	o.lab.t.Helper()
	now := o.take(o.n, nil, nil)
	want := picture{
		rules: lines(string(o.read("ip-rule.one-deleted.txt"))), routes: onlyIPv4(string(o.read("ip-route-all.one-deleted.txt"))),
		links: now.links, iptables: now.iptables, native: now.native,
	}
	var grown []difference
	for _, d := range o.grown() {
		if !strings.Contains(d.pattern, "link: ") {
			grown = append(grown, d)
		}
	}
	compare(o.lab.t, want, now, grown...)
	if got, recorded := entries(o.sh(o.n, "cat "+node.Checkpoint)), entries(string(o.read("ipam.one-deleted.json"))); !slices.Equal(got, recorded) {
		o.lab.t.Errorf("file has\n%v\nrecorded\n%v", got, recorded)
	}
}
