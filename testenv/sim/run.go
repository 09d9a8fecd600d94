package sim

import "fmt"

// Options configure a run.
type Options struct {
	Seed  uint64
	Trace func(line string) // nil for no trace
}

// Result is the outcome of a run.
type Result struct {
	Failure *Failure // nil if every invariant held
	Stats   Stats
	Hash    uint64 // always the same for the same seed
}

// traceLines is how much of its trace a failure shows.
const traceLines = 60

// Run plays the scenario of one seed. It replays a failed run with tracing, to show how the
// failure happened.
func Run(o Options) Result {
	s := ScenarioOf(o.Seed)
	res := Play(s, o.Trace)
	if res.Failure != nil && o.Trace == nil {
		var last []string
		Play(s, func(line string) {
			if last = append(last, line); len(last) > 2*traceLines {
				last = append(last[:0], last[len(last)-traceLines:]...)
			}
		})
		res.Failure.Trace = last[max(0, len(last)-traceLines):]
	}
	return res
}

// Play runs one scenario.
func Play(s Scenario, trace func(string)) (res Result) {
	w := newWorld(s, trace)
	defer func() {
		if r := recover(); r != nil {
			w.violate("no panic", "%v", withStack(r))
		}
		w.close()
		w.stats.Seeds, w.stats.Virtual = 1, w.clock
		res = Result{Failure: w.fail, Stats: w.stats, Hash: w.hash}
	}()
	w.describe()
	for _, n := range w.nodes {
		n.start()
		n.live()
	}
	w.meddle()
	w.runUntil(s.Busy)
	w.settle()
	return Result{}
}

// describe writes the world to the trace.
func (w *World) describe() {
	if w.trace == nil {
		return
	}
	w.tracef("scenario: %s", scenarioText(w.Scenario))
	for _, n := range w.nodes {
		w.tracef("%s: %s", n.name, fmt.Sprintf("%+v", n.spec))
	}
	for _, s := range w.ec2.subnets {
		w.tracef("%s: %v, %d free, %v", s.id, s.cidr, s.Free(), s.tags)
	}
}

func scenarioText(s Scenario) string {
	s.Nodes, s.Subnets = nil, nil
	return fmt.Sprintf("%+v", s)
}
