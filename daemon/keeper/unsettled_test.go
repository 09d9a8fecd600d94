package keeper

import (
	"errors"
	"testing"
	"time"

	"cnictl/daemon/ipam"
)

// TestKeeper_AddressOfAnUnsettledDEL: the disk is slower than the cooldown. Until the DEL is
// on disk, its address is not assigned to another pod, because the DEL may be undone. The
// cooldown runs from the answer, when the plugin removes the last pod's rules.
func TestKeeper_AddressOfAnUnsettledDEL(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		err  error
	}{{"written late", nil}, {"not written", errors.New("disk full")}} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			primary := b.book.Snapshot().ENIs[0].ENI
			b.policy.Cooldown = time.Second
			b.book = ipam.New(ipam.Options{Cooldown: time.Second})
			b.apply(b.clock, ipam.AttachENI{ENI: primary})
			b.give(1)
			first := b.add("first", 0)
			b.send(first.Add)
			b.write(nil)
			had := first.got(t).Allocations[0].IPv4

			d := del("first")
			b.send(d.Del)
			b.pass(2 * time.Second)
			early := b.add("early", time.Minute)
			b.send(early.Add)
			early.unanswered(t, "ADD that can only have the address of a DEL under way")
			b.write(row.err)
			if row.err != nil {
				if r := d.got(t); r.Success {
					t.Errorf("DEL: %+v", r)
				}
				if s := first.sandbox(0); !b.holds(s) {
					t.Errorf("%s was taken from the sandbox whose DEL failed", had)
				}
				return
			}
			if r := d.got(t); !r.Success {
				t.Errorf("DEL: %+v", r)
			}
			b.Step(b.clock)
			early.unanswered(t, "ADD while the address rests")
			b.pass(2 * time.Second)
			b.write(nil)
			if r := early.got(t); !r.Success || r.Allocations[0].IPv4 != had {
				t.Errorf("ADD after the rest: %+v, want %s", r, had)
			}
		})
	}
}
