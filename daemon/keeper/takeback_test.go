package keeper

import (
	"errors"
	"testing"
	"time"
)

// TestTakeBack: if an ADD fails after all, its address is available to the next pod at once,
// even if the disk fails meanwhile; the sandbox keeps what it had before that ADD.
func TestTakeBack(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		repeat bool // the ADD is a repetition
		disk   error
	}{
		{"of the only ADD", false, nil},
		{"and the disk fails", false, errors.New("full")},
		{"of a repeated one", true, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.give(1)
			r := b.add("a", 0)
			b.send(r.Add)
			b.write(nil)
			address := r.got(t).Allocations[0].IPv4
			if row.repeat {
				r = b.add("a", 0)
				b.send(r.Add)
				r.got(t)
			}
			done := 0
			b.send(TakeBack{Add: r.Add, Done: func() { done++ }})
			if !row.repeat {
				if done != 0 {
					t.Error("done before it is on disk")
				}
				b.write(row.disk)
			}
			if done != 1 {
				t.Errorf("done %d times", done)
			}
			b.pass(time.Minute) // the write is retried
			if len(b.disk) > 0 {
				b.write(nil)
			}
			if held := b.holds(r.sandbox(0)); held != row.repeat {
				t.Errorf("the sandbox holds an address: %v", held)
			}
			if n := recorded[AddressReleased](b); n != 1 && !row.repeat || row.repeat && n != 0 {
				t.Errorf("recorded %d times that it is free", n)
			}
			if row.repeat {
				return
			}
			other := b.add("b", 0)
			b.send(other.Add)
			b.write(nil)
			if got := other.got(t); !got.Success || got.Allocations[0].IPv4 != address {
				t.Errorf("another pod got %+v, want %s", got, address)
			}
		})
	}
}

// TestTakeBack_AtOnce: the address needs no cooldown.
func TestTakeBack_AtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.give(1)
	r := b.add("a", 0)
	b.send(r.Add)
	b.write(nil)
	b.send(TakeBack{Add: r.Add, Done: func() {}})
	other := b.add("b", 0)
	b.send(other.Add)
	b.write(nil)
	if len(b.disk) > 0 {
		b.write(nil)
	}
	if got := other.got(t); !got.Success || got.Allocations[0].IPv4 != r.reply.Allocations[0].IPv4 {
		t.Errorf("%+v", got)
	}
}

// TestTakeBack_Ended: a DEL ended the assignment in between, and the address belongs to
// another pod.
func TestTakeBack_Ended(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.give(1)
	r := b.add("a", 0)
	b.send(r.Add)
	b.write(nil)
	d := del("a")
	b.send(d.Del)
	b.write(nil)
	b.pass(time.Minute)
	other := b.add("b", 0)
	b.send(other.Add)
	b.write(nil)
	if !other.got(t).Success {
		t.Fatalf("%+v", other.reply)
	}
	b.send(TakeBack{Add: r.Add, Done: func() {}})
	if !b.holds(other.sandbox(0)) || recorded[AddressReleased](b) != 1 {
		t.Errorf("another pod's address was taken; recorded %d times", recorded[AddressReleased](b))
	}
}
