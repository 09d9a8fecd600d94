package live

import "time"

// step is the unit to which widened intervals are rounded up.
const step = 5 * time.Second

// firstLookFactor lengthens the interval of rows on the screen until every node has been read
// once: at the default, from five seconds to the ten that a row may take.
const firstLookFactor = 2

// Cost sets the measured processor time of one read, which the plan smooths.
func (p *Plan) Cost(one time.Duration) { p.cost = smooth(p.cost, max(one, 0)) }

// Interval is the time between two reads of a row on the screen.
func (p *Plan) Interval() time.Duration {
	return widen(p.interval(), time.Duration(len(p.shown))*p.tookTop/time.Duration(p.cfg.Workers))
}

func (p *Plan) interval() time.Duration { return max(p.cfg.Interval, MinVisible) }

// Background is the time between two reads of a node that is not on the screen.
func (p *Plan) Background() time.Duration {
	n := time.Duration(len(p.nodes))
	return widen(p.background(), max(n*p.took/time.Duration(p.steadySlots()), n*p.steadyGap()))
}

func (p *Plan) background() time.Duration { return max(p.cfg.Background, p.cfg.Interval) }

// Widened reports that an interval is longer than requested because the fleet is large.
func (p *Plan) Widened() bool {
	return p.Interval() > p.interval() || p.Background() > p.background()
}

// widen lengthens an interval to the time that its work needs.
func widen(wanted, needed time.Duration) time.Duration {
	if needed <= wanted {
		return wanted
	}
	return max(wanted, min((needed+step-1)/step*step, MaxBackground))
}

// every returns the interval of a lane.
func (p *Plan) every(t tier, upstream bool) time.Duration {
	var d time.Duration
	switch t {
	case tierForced:
		d = MinForced
	case tierOpen:
		d = max(p.cfg.Interval/2, MinOpen)
	case tierVisible:
		d = p.Interval()
		if !p.Swept() {
			d *= firstLookFactor // the user waits most for nodes not read yet
		}
	case tierFailing:
		d = max(p.cfg.Interval, MinFailing)
	case tierRest:
		d = p.Background()
	default:
		d = BrokenEvery
	}
	if p.away && t != tierForced {
		d *= AwayFactor
	}
	if upstream {
		d = max(d, UpstreamMin)
	}
	return d
}

// Swept reports that at least one read of every node was started.
func (p *Plan) Swept() bool { return p.unread == 0 }

// gap is the minimum time between two reads of nodes off the screen. It keeps reading within
// its share of the processor; the first round uses a shorter gap if it needs one to finish in
// time.
func (p *Plan) gap() time.Duration {
	if !p.Swept() {
		return min(p.steadyGap(), FirstWithin/time.Duration(len(p.nodes)))
	}
	return p.steadyGap()
}

func (p *Plan) steadyGap() time.Duration {
	return min(time.Duration(float64(p.cost)/MaxShare), MaxBackground/time.Duration(max(len(p.nodes), 1)))
}

// burst is how many nodes off the screen may be read at once before gap applies: a timer for
// each would cost more than it saves.
const burst = 4

// pace records that a node off the screen was picked.
func (p *Plan) pace(now time.Time) {
	gap := p.gap()
	if earliest := now.Add(-burst * gap); p.paced.Before(earliest) {
		p.paced = earliest
	}
	p.paced = p.paced.Add(gap)
}

// rounds measures how long it takes to read every node once, excluding the time in which no
// read was in flight.
type rounds struct {
	round uint64
	left  int // nodes not read in this round
	start time.Time
	idle  time.Duration
	rest  time.Time // since when no read is in flight; zero if one is
	sweep time.Duration
}

// Sweep returns how long the last complete round took.
func (r *rounds) Sweep() time.Duration { return r.sweep }

func (r *rounds) began(n *node, now time.Time) {
	if r.start.IsZero() {
		r.start, r.idle = now, 0
	}
	if n.round != r.round {
		n.round = r.round
		r.left--
	}
}

func (r *rounds) busyFrom(now time.Time) {
	if !r.rest.IsZero() && !r.start.IsZero() {
		r.idle += now.Sub(r.rest)
	}
	r.rest = time.Time{}
}

func (r *rounds) idleFrom(now time.Time) { r.rest = now }

func (r *rounds) ended(now time.Time, nodes int) {
	if r.left > 0 || r.start.IsZero() {
		return
	}
	r.sweep = now.Sub(r.start) - r.idle
	r.round++
	r.left, r.start = nodes, time.Time{}
}
