package sim

import (
	"fmt"
	"time"
)

// epoch is the wall clock at the start of every world.
var epoch = time.Unix(1_790_000_000, 0).UTC()

// World is everything that one run simulates: one EC2 with the nodes of one VPC.
type World struct {
	Scenario Scenario

	clock   time.Duration
	events  queue
	running *fiber
	fibers  []*fiber // of people and pods; each process has separate ones
	tidyAt  int      // number of fibers at which ended ones are removed

	ec2   *ec2
	nodes []*node

	trace func(string) // nil if not traced
	hash  uint64       // of everything that has happened
	stats Stats
	fail  *Failure

	settling bool // faults have ended

	retagged bool // a subnet's tags have changed since the start

	dice struct{ pods, ec2, faults, crashes, keepers *random }
}

// newWorld creates a world in which nothing has happened yet.
func newWorld(s Scenario, trace func(string)) *World {
	w := &World{Scenario: s, trace: trace, hash: s.Seed}
	w.dice.pods, w.dice.ec2, w.dice.faults = stream(s.Seed, 1), stream(s.Seed, 2), stream(s.Seed, 3)
	w.dice.crashes, w.dice.keepers = stream(s.Seed, 4), stream(s.Seed, 5)
	w.ec2 = newEC2(w)
	for i, spec := range s.Nodes {
		w.nodes = append(w.nodes, newNode(w, i, spec))
	}
	return w
}

// now is the virtual wall clock.
func (w *World) now() time.Time { return epoch.Add(w.clock) }

// after runs do later.
func (w *World) after(d time.Duration, do func()) { w.events.push(w.clock+max(d, 0), do) }

// begin starts code that runs until it returns or the world ends.
func (w *World) begin(body func()) {
	w.fibers = append(w.fibers, w.spawn(body))
	if len(w.fibers) > w.tidyAt {
		w.fibers = running(w.fibers)
		w.tidyAt = max(256, 2*len(w.fibers))
	}
}

// runUntil plays all events up to a time, or up to the first broken invariant.
func (w *World) runUntil(end time.Duration) {
	for w.fail == nil && len(w.events.heap) > 0 && w.events.heap[0].at <= end {
		e := w.events.pop()
		w.clock = e.at
		w.stats.Steps++
		w.mix(uint64(e.at) ^ e.seq<<40)
		e.do()
	}
	if w.fail == nil {
		w.clock = max(w.clock, end)
	}
}

// close ends all waiting code.
func (w *World) close() {
	for _, f := range w.fibers {
		f.kill()
	}
	for _, n := range w.nodes {
		if n.process != nil {
			n.process.endFibers()
		}
	}
}

// mix adds to the hash of the run.
func (w *World) mix(x uint64) { w.hash = (w.hash ^ x) * 0x100000001b3 }

// tracef writes a line to the trace. Callers with costly arguments first check for tracing.
func (w *World) tracef(format string, args ...any) {
	if w.trace != nil {
		w.trace(fmt.Sprintf("%s %6d  ", clockText(w.clock), w.stats.Steps) + fmt.Sprintf(format, args...))
	}
}

func clockText(d time.Duration) string {
	return fmt.Sprintf("%02d:%02d:%02d.%06d", d/time.Hour, d/time.Minute%60, d/time.Second%60, d/time.Microsecond%1e6)
}

// violate ends the run because an invariant is broken.
func (w *World) violate(invariant, format string, args ...any) {
	if w.fail != nil {
		return
	}
	w.fail = &Failure{Seed: w.Scenario.Seed, Step: w.stats.Steps, At: w.clock, Invariant: invariant, Text: fmt.Sprintf(format, args...)}
	w.tracef("VIOLATION of %q: %s", invariant, w.fail.Text)
}
