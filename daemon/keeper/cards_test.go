package keeper

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"cnictl/daemon/api/checkpoint"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

// cardsBench is a bench whose pods may have an interface per network card. Card n has the
// addresses 10.n.1.x.
func cardsBench(t *testing.T, cards int) *bench {
	t.Helper()
	b := &bench{t: t, clock: time.Unix(1_790_000_000, 0)}
	b.Keeper = newCards(b, cards)
	for card := range cards {
		b.apply(b.clock, ipam.AttachENI{ENI: eniOfCard(card)})
	}
	b.describe(1000)
	t.Cleanup(func() {
		for _, e := range b.events {
			if e, ok := e.(BookRefused); ok {
				t.Errorf("the book refused %T: %v", e.Event, e.Err)
			}
		}
	})
	return b
}

func newCards(b *bench, cards int) *Keeper {
	limits := warmpool.Limits{IPv4PerENI: 10}
	for range cards {
		limits.ENIsByCard = append(limits.ENIsByCard, 2)
	}
	return New(Options{
		Settings: Settings{
			Policy: warmpool.Policy{
				MultiNIC: true, WarmENI: 1, MaxPods: 110, Cooldown: 30 * time.Second, ScaleDownInterval: 30 * time.Second, ENIMinAge: time.Minute,
			},
			MultiNIC: true, Provisioning: true, CheckpointPath: "ipam.json", VethPrefix: "eni", InstanceID: "i-0123456789abcdef0",
			PrimaryENI: "eni-card-0", Subnets: resync.SubnetPolicy{NodeSubnet: testSubnet}, TokenPrefix: "t",
		},
		Limits: limits, Outside: b, Jitter: middle, Now: b.clock,
	})
}

func eniOfCard(card int) ipam.ENI {
	return ipam.ENI{
		ID: ipam.ENIID(fmt.Sprint("eni-card-", card)), Primary: card == 0, Card: card, SubnetID: testSubnet, Subnet: netip.MustParsePrefix("10.0.0.0/8"),
		PrimaryIP: netip.AddrFrom4([4]byte{10, byte(card), 0, 4}), RouteTable: 10 + card,
	}
}

func ofCard(card, from, n int) (out []netip.Prefix) {
	for i := range n {
		out = append(out, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(card), 1, byte(from + i + 1)}), 32))
	}
	return out
}

// fill gives a card addresses.
func (b *bench) fill(card, from, n int) {
	b.apply(b.clock, ipam.AddCIDRs{ID: eniOfCard(card).ID, CIDRs: ofCard(card, from, n)})
}

func (b *bench) addAll(name string, wait time.Duration) *asked {
	a := b.add(name, wait)
	a.Request.RequiresMultiNIC = true
	return a
}

// TestMultiNIC_OneOfEachOrNone: a pod with an interface per card gets one address of each
// card in order, and leaves nothing behind if a card has none.
func TestMultiNIC_OneOfEachOrNone(t *testing.T) {
	t.Parallel()
	b := cardsBench(t, 3)
	b.fill(0, 0, 2)
	b.fill(1, 0, 2)
	without := b.addAll("without", 0)
	b.send(without.Add)
	if r := without.got(t); r.Success || r.Detail == "" {
		t.Errorf("%+v", r)
	}
	if all := b.Assignments(); len(all) > 0 {
		t.Errorf("left behind: %v", all)
	}
	b.fill(2, 0, 1)
	with := b.addAll("with", 0)
	b.send(with.Add)
	img := b.write(nil)
	r := with.got(t)
	if !r.Success || len(r.Allocations) != 3 || len(img.Files) != 3 {
		t.Fatalf("%+v, %d files", r, len(img.Files))
	}
	for card, a := range r.Allocations {
		if want := fmt.Sprintf("10.%d.1.1", card); a.IPv4 != want || a.RouteTable != int32(10+card) {
			t.Errorf("interface %d: %s, table %d; want %s, %d", card, a.IPv4, a.RouteTable, want, 10+card)
		}
	}
	d := del("with")
	b.send(d.Del)
	b.write(nil)
	if got := d.got(t); !got.Success || len(got.Allocations) != 3 || got.Allocations[0] != r.Allocations[0] || got.Allocations[2] != r.Allocations[2] {
		t.Errorf("DEL: %+v", got)
	}
}

// TestMultiNIC_SingleOverflows: a pod with one interface gets an address of the next card if
// the first has none, and only that card's file is written.
func TestMultiNIC_SingleOverflows(t *testing.T) {
	t.Parallel()
	b := cardsBench(t, 2)
	b.fill(0, 0, 1)
	b.fill(1, 0, 1)
	for i, want := range []string{"10.0.1.1", "10.1.1.1"} {
		a := b.add(fmt.Sprint("pod-", i), 0)
		b.send(a.Add)
		img := b.write(nil)
		if r := a.got(t); !r.Success || r.Allocations[0].IPv4 != want || len(img.Files) != 1 || img.Files[0].Card != i {
			t.Errorf("pod %d: %+v, files %v", i, r, img.Files)
		}
	}
}

// TestMultiNIC_OlderIsNotStarved: a younger pod also wants each address that becomes free.
func TestMultiNIC_OlderIsNotStarved(t *testing.T) {
	t.Parallel()
	b := cardsBench(t, 2)
	old := b.addAll("old", time.Minute)
	b.send(old.Add)
	young := []*asked{b.add("young-0", time.Minute), b.add("young-1", time.Minute), b.add("young-2", time.Minute)}
	for _, y := range young {
		b.send(y.Add)
	}
	b.fill(0, 0, 1)
	b.Step(b.clock)
	old.unanswered(t, "a pod with half of its addresses")
	b.fill(0, 1, 1)
	b.Step(b.clock)
	b.write(nil)
	if !young[0].got(t).Success {
		t.Error("an address that no older ADD needs was not given")
	}
	b.fill(1, 0, 1)
	b.Step(b.clock)
	b.write(nil)
	if !old.got(t).Success {
		t.Error("the oldest went without")
	}
	young[1].unanswered(t, "a pod for which nothing is left")
	b.fill(1, 1, 2)
	b.Step(b.clock)
	b.write(nil)
	if !young[1].got(t).Success || !young[2].got(t).Success {
		t.Error("the others went without")
	}
}

// TestMultiNIC_DELEndsAWaitingHalf: a start found half of a pod's addresses. Its ADD is
// repeated and waits; the following DEL ends both.
func TestMultiNIC_DELEndsAWaitingHalf(t *testing.T) {
	t.Parallel()
	b := cardsBench(t, 2)
	b.fill(0, 0, 1)
	half := checkpoint.Entry{
		NetworkName: "aws-cni", ContainerID: "half", IfName: "eth0", IPv4: netip.MustParseAddr("10.0.1.1"), PodNamespace: "shop", PodName: "half",
		Interfaces: 2, AllocatedAt: b.clock,
	}
	if _, err := b.Restore(b.clock, Start{Entries: []checkpoint.Entry{half}}); err != nil {
		t.Fatal(err)
	}
	again := b.addAll("half", time.Minute)
	b.send(again.Add)
	again.unanswered(t, "the ADD")
	d := del("half")
	b.send(d.Del)
	if r := again.got(t); r.Success {
		t.Errorf("ADD of a deleted sandbox: %+v", r)
	}
	b.write(nil)
	if r := d.got(t); !r.Success || len(r.Allocations) != 1 {
		t.Errorf("DEL: %+v", r)
	}
	b.fill(1, 0, 1)
	b.pass(time.Minute)
	if all := b.Assignments(); len(all) > 0 {
		t.Errorf("left over: %v", all)
	}
}

// TestMultiNIC_WaitsForTheLastNetwork: while the rules of a sandbox's last network are being
// removed, its waiting ADD does not get the addresses that are about to go.
func TestMultiNIC_WaitsForTheLastNetwork(t *testing.T) {
	t.Parallel()
	b := cardsBench(t, 2)
	b.fill(0, 0, 1)
	half := checkpoint.Entry{
		NetworkName: "aws-cni", ContainerID: "half", IfName: "eth0", IPv4: netip.MustParseAddr("10.0.1.1"), PodNamespace: "shop", PodName: "half",
		Interfaces: 2, AllocatedAt: b.clock,
	}
	if _, err := b.Restore(b.clock, Start{Entries: []checkpoint.Entry{half}}); err != nil {
		t.Fatal(err)
	}
	again := b.addAll("half", time.Minute)
	b.send(again.Add)
	gone := b.Assignments()
	b.recon.dropping[gone[0].Sandbox] = true
	b.fill(1, 0, 1)
	b.fill(0, 1, 1)
	b.Step(b.clock)
	again.unanswered(t, "the ADD")
	b.send(Dropped{Tried: gone, Done: gone})
	b.write(nil)
	if r := again.got(t); !r.Success || len(r.Allocations) != 2 || r.Allocations[0].IPv4 != "10.0.1.2" {
		t.Errorf("%+v", r)
	}
}

// TestDEL_HalfBeingDropped: the DEL waits until the half being dropped is gone.
func TestDEL_HalfBeingDropped(t *testing.T) {
	t.Parallel()
	b := cardsBench(t, 2)
	b.fill(0, 0, 1)
	b.fill(1, 0, 1)
	a := b.addAll("a", 0)
	b.send(a.Add)
	b.write(nil)
	second := b.held(a.sandbox(0))[1]
	b.recon.dropping[second.Sandbox] = true
	d := del("a")
	b.send(d.Del)
	d.unanswered(t, "the DEL before the drop")
	b.send(Dropped{Tried: []ipam.Assignment{second}, Done: []ipam.Assignment{second}})
	d.unanswered(t, "the DEL before the write")
	b.write(nil)
	if r := d.got(t); !r.Success || len(r.Allocations) != 2 || r.Allocations[1].IPv4 != "10.1.1.1" {
		t.Errorf("DEL: %+v", r)
	}
	if left := b.Assignments(); len(left) != 0 {
		t.Errorf("left after the drop: %v", left)
	}
}

// TestRestore_EntryOfAnotherCard: an allocation whose ENI moved to another card is removed
// from its old file, or it would come back from there; otherwise nothing is written.
func TestRestore_EntryOfAnotherCard(t *testing.T) {
	t.Parallel()
	entry := checkpoint.Entry{
		NetworkName: "aws-cni", ContainerID: "a", IfName: "eth0", IPv4: netip.MustParseAddr("10.1.1.1"), PodNamespace: "shop", PodName: "a",
		Interfaces: 1, AllocatedAt: time.Unix(1_790_000_000, 0),
	}
	for _, row := range []struct {
		name       string
		card       int
		interfaces int
		more       []checkpoint.Entry
		files      []int
	}{
		{"where it belongs", 1, 1, nil, nil},
		{"in the file of another card", 0, 1, nil, []int{1, 0}},
		{"an interface of a pod with several stays in its own", 0, 2, nil, nil},
		{"a second entry is not believed", 1, 1, []checkpoint.Entry{{NetworkName: "aws-cni", ContainerID: "a", IfName: "eth0", IPv4: netip.MustParseAddr("10.1.1.2")}}, []int{0, 1}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := cardsBench(t, 2)
			b.fill(1, 0, 2)
			e := entry
			e.Card, e.Interfaces = row.card, row.interfaces
			if _, err := b.Restore(b.clock, Start{Entries: append([]checkpoint.Entry{e}, row.more...)}); err != nil {
				t.Fatal(err)
			}
			if err := b.Check(); err != nil {
				t.Error(err)
			}
			b.Step(b.clock)
			var files []int
			for _, img := range b.disk {
				for _, f := range img.Files {
					files = append(files, f.Card)
				}
			}
			if !slices.Equal(files, row.files) {
				t.Errorf("writes the files of cards %v, want %v", files, row.files)
			}
		})
	}
}

// TestCommit_FilesOfAFailedWrite: if a failed write should have removed an entry from
// another card's file, the next write removes it, even if nothing of that card changes
// again.
func TestCommit_FilesOfAFailedWrite(t *testing.T) {
	t.Parallel()
	b := cardsBench(t, 2)
	b.fill(1, 0, 1)
	a := b.add("a", 0)
	b.send(a.Add)
	b.write(nil)
	gone := b.Assignments()
	b.send(Dropped{Tried: gone, Done: gone}) // no request waits for that write
	b.write(errors.New("disk full"))
	b.pass(commitRetry)
	img := b.write(nil)
	i := slices.IndexFunc(img.Files, func(f ImageFile) bool { return f.Card == 1 })
	if i < 0 {
		t.Fatal("the file of card 1 is not written again")
	}
	if entries, err := checkpoint.Decode(img.Files[i].Data); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v; want none", entries, err)
	}
}

// node is a Keeper with a failing disk, pods that come and go, and crashes.
type node struct {
	*bench
	t     *testing.T
	rand  *rand.Rand
	cards int
	files map[int][]byte
	pods  map[string]*lodger
	named int
	given []int // addresses per card
	// crashes: the daemon dies now and then. A failed write may then have left an entry in a
	// file, which ends only with its link.
	crashes bool
}

// lodger is a sandbox as its runtime sees it.
type lodger struct {
	name    string
	multi   bool
	add     *asked // the last one
	heard   *cniwire.AddReply
	del     *ended   // the last one, nil if none
	has     []string // addresses in the answers
	crashed bool     // the daemon died during its ADD
}

func (n *node) step() {
	switch k := n.rand.IntN(24); {
	case k < 6:
		n.named++
		p := &lodger{name: fmt.Sprint("pod-", n.named), multi: n.rand.IntN(2) == 0}
		n.pods[p.name] = p
		n.ask(p)
	case k < 9:
		if p := n.any(); p != nil && p.del == nil {
			n.ask(p) // repeated
		}
	case k < 13:
		if p := n.any(); p != nil {
			p.del = del(p.name)
			n.send(p.del.Del)
		}
	case k < 17:
		n.commit(n.rand.IntN(4) == 0)
	case k == 17:
		if card := n.rand.IntN(n.cards); n.given[card] < 9 {
			n.fill(card, n.given[card], 1)
			n.given[card]++
			n.Step(n.clock)
		}
	case k < 23:
		n.pass(time.Duration(n.rand.IntN(4000)) * time.Millisecond)
	case n.crashes:
		n.crash()
	}
	n.hear()
	n.verify()
}

func (n *node) any() *lodger {
	names := slices.Sorted(maps.Keys(n.pods))
	if len(names) == 0 {
		return nil
	}
	return n.pods[names[n.rand.IntN(len(names))]]
}

func (n *node) ask(p *lodger) {
	if p.add != nil && p.add.reply == nil {
		return // one at a time
	}
	p.add = n.add(p.name, time.Duration(n.rand.IntN(3))*time.Second)
	p.add.Request.RequiresMultiNIC = p.multi
	n.send(p.add.Add)
}

// commit ends a write; a failed one leaves some of its files written.
func (n *node) commit(fails bool) {
	if len(n.disk) == 0 {
		return
	}
	img := n.disk[0]
	n.disk = n.disk[1:]
	var err error
	done := len(img.Files)
	if fails {
		done, err = n.rand.IntN(done+1), errors.New("disk full")
	}
	for _, f := range img.Files[:done] {
		n.files[f.Card] = bytes.Clone(f.Data)
	}
	n.send(Committed{Gen: img.Gen, Err: err})
}

// hear records the answers.
func (n *node) hear() {
	for name, p := range n.pods {
		if r := p.add.reply; r != nil && r != p.heard && r.Success && p.del == nil {
			p.heard = r
			var has []string
			for _, a := range r.Allocations {
				has = append(has, a.IPv4)
			}
			if p.has != nil && !slices.Equal(p.has, has) && !p.crashed {
				n.t.Fatalf("%s had %v and has %v", name, p.has, has)
			}
			p.has, p.crashed = has, false
		}
		if p.del != nil && p.del.reply != nil {
			if r := p.del.reply; r.Success || r.Unknown {
				delete(n.pods, name)
				continue
			}
			p.del = nil // the runtime retries
			p.crashed = true
		}
	}
}

func (n *node) onDisk() map[ipam.Sandbox]checkpoint.Entry {
	out := map[ipam.Sandbox]checkpoint.Entry{}
	for _, e := range n.entries() {
		s := resync.SandboxOf(e)
		if !has(out, s) { // after a failed write another file may also have it
			out[s] = e
		}
	}
	return out
}

func (n *node) entries() (out []checkpoint.Entry) {
	for _, card := range slices.Sorted(maps.Keys(n.files)) {
		entries, err := checkpoint.Decode(n.files[card])
		if err != nil {
			n.t.Fatal(err)
		}
		for _, e := range entries {
			e.Card = card
			out = append(out, e)
		}
	}
	return out
}

// verify compares the book, the files and the answers.
func (n *node) verify() {
	n.t.Helper()
	if err := n.Check(); err != nil {
		n.t.Fatal(err)
	}
	disk := n.onDisk()
	for name, p := range n.pods {
		held := n.held(p.add.sandbox(0))
		if want := n.interfaces(p); len(held) != 0 && len(held) != want && !p.crashed {
			n.t.Fatalf("%s holds %d addresses, wants %d", name, len(held), want)
		}
		if r := p.add.reply; r != nil && !r.Success && p.has == nil && p.del == nil && !p.crashed && len(held) > 0 {
			n.t.Fatalf("%s was refused %+v, and holds %v", name, r, held)
		}
		if p.has == nil || p.del != nil || p.crashed {
			continue
		}
		for i, a := range p.has {
			s := p.add.sandbox(i)
			if have, ok := n.book.Lookup(s); !ok || have.Address.String() != a {
				n.t.Fatalf("%s was given %v, and the book has %v", name, p.has, held)
			}
			if e, ok := disk[s]; !ok || e.IPv4.String() != a {
				n.t.Fatalf("%s was given %v, and the files have %+v", name, p.has, e)
			}
		}
	}
	if n.gen == n.durable && !n.writing {
		n.same(disk)
	}
}

func (n *node) interfaces(p *lodger) int {
	if p.multi {
		return n.cards
	}
	return 1
}

// same compares the files with the book.
func (n *node) same(disk map[ipam.Sandbox]checkpoint.Entry) {
	n.t.Helper()
	all := n.Assignments()
	for _, a := range all {
		if e, ok := disk[a.Sandbox]; !ok || e.IPv4 != a.Address || e.PodName != a.Pod.Name || e.Card != a.Card {
			n.t.Fatalf("the book has %+v, and the files have %+v", a, e)
		}
	}
	if entries := n.entries(); len(all) != len(entries) {
		n.t.Fatalf("%d allocations, entries %v", len(all), entries)
	}
}

// crash restarts from the files. Runtimes delete sandboxes with open requests.
func (n *node) crash() {
	n.hear()
	before, quiet := n.lodged(), n.gen == n.durable && !n.writing
	n.disk = nil
	var links []string
	for _, p := range n.pods {
		links = append(links, netnames.HostVeth("eni", "shop", p.name, 0))
	}
	var usable []resync.Attached
	for card := range n.cards {
		usable = append(usable, resync.Attached{ENI: eniOfCard(card), CIDRs: ofCard(card, 0, n.given[card])})
	}
	n.Keeper = newCards(n.bench, n.cards)
	n.describe(1000)
	if _, err := n.Restore(n.clock, Start{Usable: usable, Entries: n.entries(), Links: links, Restart: true}); err != nil {
		n.t.Fatal(err)
	}
	if after := n.lodged(); quiet && !maps.Equal(before, after) {
		n.t.Fatalf("before the start %v, after it %v", before, after)
	}
	for _, p := range n.pods {
		if p.has == nil || p.del != nil || p.add.reply == nil {
			p.crashed = p.crashed || p.has == nil || p.del != nil
			if p.add.reply == nil {
				p.add = n.add(p.name, 0)
				p.add.Request.RequiresMultiNIC = p.multi
				p.add.reply = nil
				n.send(p.add.Add) // like the runtime's retry
			}
			p.del = nil
		}
	}
}

// lodged returns the addresses of living sandboxes.
func (n *node) lodged() map[ipam.Sandbox]netip.Addr {
	out := map[ipam.Sandbox]netip.Addr{}
	for _, a := range n.Assignments() {
		if n.pods[a.Pod.Name] != nil {
			out[a.Sandbox] = a.Address
		}
	}
	return out
}

// TestMultiNIC_RandomLives: with failing writes that leave some files written, DELs that
// race ADDs, and crashes, a pod has either all of its addresses or none, what was answered
// is on disk and stays, and the files end up equal to the book.
func TestMultiNIC_RandomLives(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			n := &node{t: t, rand: rand.New(rand.NewPCG(seed, 4)), cards: 1 + int(seed%3), crashes: seed%2 == 0, files: map[int][]byte{}, pods: map[string]*lodger{}}
			n.bench = cardsBench(t, n.cards)
			for card := range n.cards {
				n.given = append(n.given, 1+n.rand.IntN(5))
				n.fill(card, 0, n.given[card])
			}
			for range 120 {
				n.step()
			}
			n.drain()
		})
	}
}

// drain ends every pod: nothing may be left.
func (n *node) drain() {
	for range 200 {
		n.pass(time.Second)
		n.commit(false)
		n.hear()
		for _, name := range slices.Sorted(maps.Keys(n.pods)) {
			if p := n.pods[name]; p.del == nil {
				p.del = del(name)
				n.send(p.del.Del)
			}
		}
		n.hear()
		if len(n.pods) == 0 && n.gen == n.durable && !n.writing {
			break
		}
	}
	n.verify()
	if n.crashes {
		n.endUnlinked()
	}
	if left := n.Assignments(); len(left) > 0 || len(n.pods) > 0 || len(n.entries()) > 0 {
		n.t.Fatalf("left over: %v, pods %v, entries %v", left, n.pods, n.entries())
	}
	if n.Waiting() > 0 || len(n.unanswered) > 0 || len(n.unsettled) > 0 {
		n.t.Errorf("%d wait, %d unanswered, %d unsettled", n.Waiting(), len(n.unanswered), len(n.unsettled))
	}
}

// endUnlinked observes a host without links until every allocation has ended.
func (n *node) endUnlinked() {
	n.pass(resync.LinkDelay)
	for range 2 {
		n.begun = nil
		n.send(Observed{Links: []string{"lo"}})
		n.pass(resync.EndedGap)
	}
	for _, t := range n.begun {
		if drop, ok := t.(DropTask); ok {
			n.send(Dropped{Tried: drop.Gone, Done: drop.Gone})
		}
	}
	for len(n.disk) > 0 {
		n.commit(false)
	}
	n.verify()
}
