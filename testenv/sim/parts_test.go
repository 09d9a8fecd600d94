package sim

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

func TestQueue_InOrder(t *testing.T) {
	t.Parallel()
	var q queue
	d := stream(3, 0)
	var got []int
	at := make([]time.Duration, 200)
	for i := range at {
		at[i] = time.Duration(d.Below(20))
		q.push(at[i], func() { got = append(got, i) })
	}
	for len(q.heap) > 0 {
		q.pop().do()
	}
	want := make([]int, len(at))
	for i := range want {
		want[i] = i
	}
	slices.SortStableFunc(want, func(a, b int) int { return int(at[a] - at[b]) })
	if !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

// TestRandom_StaysTheSame: tests rely on seeds, which must always give the same runs.
func TestRandom_StaysTheSame(t *testing.T) {
	t.Parallel()
	d := stream(1, 2)
	got := []int{d.Below(1000), d.Below(1000), d.between(5, 9), int(d.span(time.Second, 2*time.Second) / time.Millisecond)}
	if want := []int{506, 727, 7, 1861}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for range 1000 {
		if n := d.between(-3, 3); n < -3 || n > 3 {
			t.Fatalf("between -3 and 3: %d", n)
		}
		if s := d.span(time.Second, 2*time.Second); s < time.Second || s >= 2*time.Second {
			t.Fatalf("between 1 s and 2 s: %v", s)
		}
	}
	if d.Below(0) != 0 || d.chance(0) || !d.chance(1) {
		t.Error("chance(0) is true or chance(1) is false")
	}
}

// TestFiber_WaitsAndDies follows code that sleeps, waits in a scope and is killed.
func TestFiber_WaitsAndDies(t *testing.T) {
	t.Parallel()
	w := quiet(t, "10.0.0.0/26")
	var log []string
	say := func(s string) { log = append(log, s+" "+w.clock.String()) }
	s := &scope{}
	w.begin(func() {
		w.sleep(time.Second)
		say("slept")
		if !w.awaitIn(s, func(done func()) { w.after(time.Hour, done) }) {
			say("ended")
		}
		if !w.awaitIn(s, func(done func()) { t.Error("begun in a scope that has ended") }) {
			say("not begun")
		}
	})
	dying := w.spawn(func() {
		defer say("cleaned up")
		w.sleep(time.Hour)
		t.Error("outlived its process")
	})
	w.after(3*time.Second, s.cancel)
	w.after(5*time.Second, dying.kill)
	w.runUntil(2 * time.Hour)
	if want := []string{"slept 1s", "ended 3s", "not begun 3s", "cleaned up 5s"}; !slices.Equal(log, want) {
		t.Errorf("got %q, want %q", log, want)
	}
}

func TestKernel_LinkTakesItsRoute(t *testing.T) {
	t.Parallel()
	w := quiet(t, "10.0.0.0/26")
	k := newKernel(w)
	a, first, second := netip.MustParseAddr("10.0.0.9"), &sandbox{id: "1"}, &sandbox{id: "2"}
	k.addLink("eni1", first)
	k.connect("eni1", a, 2)
	if r := k.podRoutes(); len(r) != 1 || r[0].HostLink != "eni1" {
		t.Errorf("routes %v", r)
	}
	k.addLink("eni1", second) // a pod with the same name
	if r := k.podRoutes(); len(r) != 1 || r[0].HostLink != "" {
		t.Errorf("the first link is gone: %v", r)
	}
	k.removeLink("eni1", first)
	if _, there := k.hostLinks()["eni1"]; !there {
		t.Error("a sandbox whose link was replaced removed the new one")
	}
	k.disconnect(a)
	k.removeLink("eni1", second)
	if len(k.addresses()) != 0 || len(k.links) != 0 {
		t.Errorf("left: %v, %v", k.addresses(), k.links)
	}
}
