package keeper

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"cnictl/daemon/api/checkpoint"
	"cnictl/daemon/ipam"
)

func assignment(n int) ipam.Assignment {
	return ipam.Assignment{
		Sandbox: ipam.Sandbox{Network: "aws-cni", ContainerID: fmt.Sprintf("%064x", n), IfName: "eth0"},
		Pod:     ipam.Pod{Namespace: "shop", Name: fmt.Sprintf("cart-%d", n), Interfaces: 1},
		Address: netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}), AssignedAt: time.Unix(1_790_000_000, int64(n)),
	}
}

// TestLedger puts and removes rows in an order that moves them, and reads the file back
// after every step.
func TestLedger(t *testing.T) {
	t.Parallel()
	l := newLedger()
	want := map[string]bool{}
	check := func(step string) {
		t.Helper()
		entries, err := checkpoint.Decode(checkpoint.Encode(l.file(0).entries()))
		if err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		got := map[string]bool{}
		for _, e := range entries {
			got[e.ContainerID] = true
		}
		if len(entries) != len(want) || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%s: file holds %v, want %v", step, got, want)
		}
	}
	put := func(n int) {
		a := assignment(n)
		l.put(a)
		want[a.Sandbox.ContainerID] = true
		check(fmt.Sprintf("put %d", n))
	}
	remove := func(n int) {
		a := assignment(n)
		l.remove(a.Sandbox)
		delete(want, a.Sandbox.ContainerID)
		check(fmt.Sprintf("remove %d", n))
	}
	check("empty")
	for n := range 5 {
		put(n)
	}
	put(3) // repeated
	remove(0)
	remove(4)
	remove(4) // repeated
	put(0)
	for n := range 5 {
		remove(n)
	}
}

// TestLedger_MoveIsWrittenBeforeItIsForgotten: an entry that moves between the files of two
// cards survives a crash between their writes, in either direction.
func TestLedger_MoveIsWrittenBeforeItIsForgotten(t *testing.T) {
	t.Parallel()
	l := newLedger()
	on := func(n, card int) ipam.Assignment {
		a := assignment(n)
		a.ENI, a.Card = "eni-1", card
		return a
	}
	order := func() (cards []int) {
		for card, f := range l.dirty() {
			cards = append(cards, card)
			f.dirty = false
		}
		return cards
	}
	for n, card := range []int{0, 2, 0, 1} {
		l.put(on(n, card))
	}
	if got := order(); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("without a move: %v", got)
	}
	for i, row := range []struct {
		n, to int
		want  []int // files written, in order
	}{
		{0, 1, []int{1, 0}}, {0, 0, []int{0, 1}}, {1, 0, []int{0, 2}}, {1, 2, []int{2, 0}}, {1, 3, []int{3, 2}}, {2, 3, []int{3, 0}},
	} {
		l.put(on(row.n, row.to))
		if got := order(); !slices.Equal(got, row.want) {
			t.Errorf("move %d: %v, want %v", i, got, row.want)
		}
	}
	// A failed write may have written neither file: the order still matters.
	l.put(on(3, 0))
	order()
	l.touch()
	if got := order(); slices.Index(got, 0) > slices.Index(got, 1) {
		t.Errorf("after a failed write: %v", got)
	}
}

// TestTakeUpTo answers only requests that a finished write covers, in the order of the
// requests.
func TestTakeUpTo(t *testing.T) {
	t.Parallel()
	k := &Keeper{}
	var sent []int
	for i, gen := range []uint64{1, 1, 2, 4} {
		k.gen = gen
		k.answerDurably(time.Time{}, func(time.Time) { sent = append(sent, i) }, nil)
	}
	for _, gen := range []uint64{0, 1, 3, 4} {
		for _, a := range k.takeUpTo(gen) {
			a.done(time.Time{})
		}
		want := []int{0, 1, 2, 3}[:map[uint64]int{0: 0, 1: 2, 3: 3, 4: 4}[gen]]
		if !slices.Equal(sent, want) {
			t.Errorf("after generation %d: answered %v, want %v", gen, sent, want)
		}
	}
}
