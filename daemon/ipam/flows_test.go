package ipam

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"
)

const (
	flowsCooldown = 30 * time.Second
	flowsLead     = 2 * time.Second
)

// TestBook_FlowsDue: the address of a pod that ended at 0 s needs two passes, and is in
// cooldown until both were made. Times are seconds after its end.
func TestBook_FlowsDue(t *testing.T) {
	t.Parallel()
	type pass struct {
		began, ended float64
		again        float64 // of a failed one: when the next can begin
	}
	for name, row := range map[string]struct {
		passes []pass
		at     float64
		due    bool
		next   float64 // 0: never
		free   bool    // at that time
	}{
		"at once":                           {at: 0, due: true},
		"first pass made":                   {passes: []pass{{began: 0, ended: 0.1}}, at: 1, next: 28},
		"first pass, just before the last":  {passes: []pass{{began: 0, ended: 0.1}}, at: 27.9, next: 28},
		"last pass due":                     {passes: []pass{{began: 0, ended: 0.1}}, at: 28, due: true},
		"last pass late":                    {passes: []pass{{began: 0, ended: 0.1}}, at: 31, due: true},
		"last pass late for long":           {passes: []pass{{began: 0, ended: 0.1}}, at: 500, due: true},
		"both made":                         {passes: []pass{{began: 0, ended: 0.1}, {began: 28, ended: 28.1}}, at: 30},
		"both made, after the cooldown":     {passes: []pass{{began: 0, ended: 0.1}, {began: 28, ended: 28.1}}, at: 30.1, free: true},
		"both made late":                    {passes: []pass{{began: 20, ended: 21}, {began: 31, ended: 32}}, at: 32, free: true},
		"none made":                         {at: 500, due: true},
		"pass began before the end":         {passes: []pass{{began: -0.1, ended: 0.1}}, at: 1, due: true},
		"three passes":                      {passes: []pass{{began: 0, ended: 0.1}, {began: 2, ended: 3}, {began: 4, ended: 5}}, at: 30.1, free: true},
		"first failed":                      {passes: []pass{{began: 0, ended: 0.1, again: 1}}, at: 1, due: true},
		"first failed, then made":           {passes: []pass{{began: 0, ended: 0.1, again: 1}, {began: 1, ended: 1.1}}, at: 2, next: 28},
		"first failed, then both made":      {passes: []pass{{began: 0, ended: 0.1, again: 1}, {began: 1, ended: 1.1}, {began: 28, ended: 28.1}}, at: 30.1, free: true},
		"first failed, no time for another": {passes: []pass{{began: 0, ended: 29.2, again: 30.2}}, at: 29.2},
		"last failed, time for another":     {passes: []pass{{began: 0, ended: 0.1}, {began: 28, ended: 28.1, again: 29.1}}, at: 29.1, due: true},
		"last failed, no time for another":  {passes: []pass{{began: 0, ended: 0.1}, {began: 29.1, ended: 29.2, again: 30.2}}, at: 29.2},
		"all failed: free all the same":     {passes: []pass{{began: 0, ended: 0.1, again: 1}, {began: 29.1, ended: 29.2, again: 30.2}}, at: 30.1, free: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			second := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
			b := New(Options{Cooldown: flowsCooldown, Passes: 2})
			apply := func(at float64, ev Event) error {
				_, err := b.Apply(second(at), ev)
				return errors.Join(err, b.Check())
			}
			one := AttachENI{ENI: ENI{ID: "eni-a", RouteTable: 254}, CIDRs: cidrs("10.0.0.10")}
			addr := netip.MustParseAddr("10.0.0.10")
			if err := errors.Join(apply(-60, one), apply(-60, add("last")), apply(0, del("last"))); err != nil {
				t.Fatal(err)
			}
			for _, p := range row.passes {
				ev := FlowsDeleted{Addresses: []netip.Addr{addr, netip.MustParseAddr("10.9.9.9")}, Began: second(p.began)}
				if p.again > 0 {
					ev.Again = second(p.again)
				}
				if err := apply(p.ended, ev); err != nil {
					t.Fatal(err)
				}
			}
			due, next := b.FlowsDue(second(row.at), flowsLead, func(netip.Addr) bool { return false })
			if slices.Contains(due, addr) != row.due || row.next == 0 != next.IsZero() || row.next > 0 && !next.Equal(second(row.next)) {
				t.Errorf("due %v, next %v", due, next.Sub(start))
			}
			if due, next := b.FlowsDue(second(row.at), flowsLead, func(a netip.Addr) bool { return a == addr }); due != nil || !next.IsZero() {
				t.Errorf("an address that waits for its DEL: due %v, next %v", due, next)
			}
			record := b.Snapshot().ENIs[0].CIDRs[0].Records[0]
			if record.Cooling(second(row.at), flowsCooldown) == row.free {
				t.Errorf("record %+v", record)
			}
			if err := apply(row.at, add("next")); (err == nil) != row.free || err != nil && !errors.Is(err, ErrNoAddress) {
				t.Errorf("the next pod: %v", err)
			}
		})
	}
}

// TestBook_FlowsWithoutCooldown: an address without a cooldown is free at once.
func TestBook_FlowsWithoutCooldown(t *testing.T) {
	t.Parallel()
	b := New(Options{Passes: 2})
	for _, ev := range []Event{
		AttachENI{ENI: ENI{ID: "eni-a", RouteTable: 254}, CIDRs: cidrs("10.0.0.10")}, add("last"), del("last"), add("next"),
	} {
		if _, err := b.Apply(start, ev); err != nil {
			t.Fatal(err)
		}
	}
	if due, next := b.FlowsDue(start, 0, func(netip.Addr) bool { return false }); due != nil || !next.IsZero() {
		t.Errorf("due %v, next %v", due, next)
	}
}

func TestCooldownEnd(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[time.Duration]time.Duration{
		10: 30*time.Second + 1, 30: 30*time.Second + 1, 31: 32 * time.Second, 60: 61 * time.Second,
	} {
		if got := CooldownEnd(start, start.Add(seconds*time.Second), flowsCooldown).Sub(start); got != want {
			t.Errorf("after %d s: %v, want %v", seconds, got, want)
		}
	}
}

func TestBook_Spare(t *testing.T) {
	t.Parallel()
	b := New(Options{})
	for _, ev := range []Event{attachA(), attachP(), add("a"), restore("b", "10.0.9.9")} {
		if _, err := b.Apply(start, ev); err != nil {
			t.Fatal(err)
		}
	}
	for addr, want := range map[string]bool{
		"10.0.0.10": false, "10.0.0.11": true, "10.0.0.4": false, "10.0.2.20": true, "2001:db8::7": true, "2001:db8:1::7": false, "10.0.9.9": false,
	} {
		if got := b.Spare(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: %t, want %t", addr, got, want)
		}
	}
}
