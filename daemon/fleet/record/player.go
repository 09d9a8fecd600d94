package record

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
)

// Options of a Player.
type Options struct {
	Now func() time.Time // the clock; nil: time.Now
}

// Bounds of the speed of a player.
const (
	MinSpeed = 0.1
	MaxSpeed = 1000
)

// Player plays a recording: it is a fleet at another time. Its methods may be called
// from any goroutine. Seek and Advance take as long as it takes to read the file; all
// others answer at once, also meanwhile.
type Player struct {
	clock clock
	file  []byte
	index index // never changed
	shown *store.Store

	sought      atomic.Uint64 // seeks asked for
	count       atomic.Uint64 // samples applied
	interrupted atomic.Bool   // the file ends in the middle, or has something unreadable
	published   atomic.Pointer[library]

	work     sync.Mutex                   // guards what follows, while the file is read
	store    *store.Store                 // what is played into: shown, while seeking another
	library  *library                     // likewise: published
	reader   *reader                      // of what comes next
	next     *entry                       // read and not yet due
	nextSize int                          // bytes of its line
	last     map[string]document.NodeIPAM // the complete sample of each node
	sizes    map[string]int               // bytes of the line of each
	size     int                          // of all
	played   time.Time                    // of the newest entry applied
	repeat   int                          // entries of a key frame still to come that add nothing new
	broken   string                       // why it cannot go on
	each     func(Sample)                 // takes the samples in place of the store, unless nil
}

// Sample is one of a node. Node is nil when the node is gone.
type Sample struct {
	At   time.Time // never before that of the sample before
	Name string
	Node *document.NodeIPAM
}

// Open reads a recording and stands at its beginning, playing.
func Open(r io.Reader, o Options) (*Player, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	file, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read the recording: %w", err)
	}
	if len(file) > maxFile {
		return nil, fmt.Errorf("the recording is larger than %d bytes: record a shorter time or fewer nodes", maxFile)
	}
	p := &Player{file: file, shown: store.New().KeepENIs()}
	p.store = p.shown
	if p.index, err = scan(file); err != nil {
		return nil, err
	}
	p.interrupted.Store(p.index.interrupted)
	p.published.Store(newLibrary())
	p.library = p.published.Load()
	p.clock.now, p.clock.end, p.clock.speed = o.Now, p.index.to, 1
	p.Seek(p.index.from)
	return p, nil
}

// OpensAt is where the screens begin to play.
func (p *Player) OpensAt() time.Time {
	if at := p.index.header.OpensAt; at != nil {
		return *at
	}
	return p.index.from
}

// Range is the time from the first to the last entry.
func (p *Player) Range() (from, to time.Time) { return p.index.from, p.index.to }

// Interrupted reports a file that ends in the middle, or has something unreadable: what
// comes before is played.
func (p *Player) Interrupted() bool { return p.interrupted.Load() }

// Run plays until ctx ends.
func (p *Player) Run(ctx context.Context) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			p.Advance()
		}
	}
}

// Advance applies what is due by now. While a seek is under way there is nothing to do:
// its end shows the fleet of then.
func (p *Player) Advance() {
	if !p.work.TryLock() {
		return
	}
	defer p.work.Unlock()
	p.apply(p.clock.position())
}

// Seek goes to a time, to the beginning or the end when it lies outside. Now shows it
// at once, View once the fleet of that time is rebuilt; of several seeks at a time the
// last one counts.
func (p *Player) Seek(to time.Time) {
	if to.Before(p.index.from) {
		to = p.index.from
	}
	if to.After(p.index.to) {
		to = p.index.to
	}
	mine := p.sought.Add(1)
	p.clock.set(to)
	p.work.Lock()
	defer p.work.Unlock()
	if p.sought.Load() != mine {
		return
	}
	f := p.index.before(to, store.HistoryLen*store.Spacing)
	if p.reader != nil && !to.Before(p.played) && !f.at.After(p.played) {
		p.apply(to)
		return
	}
	p.store = store.New().KeepENIs() // the fleet is not shown while it is rebuilt
	p.library = newLibrary()
	p.begin(f)
	p.apply(to)
	p.published.Store(p.library)
	p.shown.Take(p.store)
	p.store = p.shown
}

// Samples gives each sample of the recording in order, without key frames, wherever the player
// stands.
func (p *Player) Samples(each func(Sample) bool) {
	all := &Player{file: p.file, index: p.index, library: newLibrary()}
	more := true
	all.each = func(s Sample) { more = more && each(s) }
	for all.begin(p.index.frames[0]); more && all.step(p.index.to); {
	}
	if all.Interrupted() {
		p.interrupted.Store(true)
	}
}

// begin stands at a frame with nothing applied.
func (p *Player) begin(f frame) {
	p.last, p.sizes, p.size = map[string]document.NodeIPAM{}, map[string]int{}, 0
	p.next, p.played, p.broken = nil, time.Time{}, ""
	p.repeat = 0
	p.count.Store(0)
	var err error
	if p.reader, err = readFrom(p.file, f.offset); err == nil && f.offset == 0 {
		_, err = p.reader.line(nil) // the header
	}
	if err != nil {
		p.broken = err.Error()
	}
}

// apply puts everything up to a time into the store.
func (p *Player) apply(upto time.Time) {
	for p.step(upto) {
	}
}

// step applies the next entry, if it is due.
func (p *Player) step(upto time.Time) bool {
	if p.broken != "" {
		return false
	}
	if p.next == nil {
		e, size, err := p.reader.entry()
		if err != nil {
			if p.broken = err.Error(); !errors.Is(err, errEnd) {
				p.interrupted.Store(true)
			}
			return false
		}
		p.next, p.nextSize = &e, size
	}
	if p.next.At.After(upto) {
		return false
	}
	p.entry(*p.next)
	p.next = nil
	return true
}

// entry applies one entry.
func (p *Player) entry(e entry) {
	if e.At.After(p.played) {
		p.played = e.At
	}
	switch {
	case e.Key != nil:
		// All nodes follow: who comes from before knows them.
		if p.count.Load() > 0 {
			p.repeat = e.Key.Nodes
		}
	case e.Doc != nil:
		p.library.add(*e.Doc, p.nextSize)
	case p.repeat > 0:
		p.repeat--
	case e.Put != nil:
		p.put(*e.Put, e.At, p.nextSize)
	case e.Same != nil:
		n, ok := p.last[e.Same.Node]
		if !ok {
			return
		}
		n.SampledAt, n.LatencySeconds = e.Same.SampledAt, e.Same.LatencySeconds
		p.put(n, e.At, p.sizes[e.Same.Node])
	case e.Gone != "":
		delete(p.last, e.Gone)
		p.size -= p.sizes[e.Gone]
		delete(p.sizes, e.Gone)
		p.library.remove(e.Gone)
		if p.each != nil {
			p.each(Sample{At: p.played, Name: e.Gone})
			return
		}
		p.store.Remove(e.Gone)
	}
}

func (p *Player) put(n document.NodeIPAM, at time.Time, size int) {
	name := n.Metadata.Name
	before, known := p.last[name]
	more := size - p.sizes[name]
	if name == "" || !known && len(p.last) >= maxNodes || p.size+more > maxHeld || n.Summary != nil && n.Summary.Check() != nil {
		return
	}
	p.sizes[name] = size
	p.size += more
	if n.Object == nil {
		n.Object = before.Object
	}
	p.last[name] = n
	p.count.Add(1)
	if p.each != nil {
		p.each(Sample{At: p.played, Name: name, Node: &n})
		return
	}
	p.store.PutAt(n, at)
}

// Play goes on, or stops where it is.
func (p *Player) Play(on bool) { p.clock.change(func() { p.clock.paused = !on }) }

// Speed sets how fast time goes: 1 is as it was. It is bounded.
func (p *Player) Speed(factor float64) {
	p.clock.change(func() { p.clock.speed = max(MinSpeed, min(MaxSpeed, factor)) })
}

// Rate is how fast time goes.
func (p *Player) Rate() float64 { return p.clock.rate() }

// View is the fleet as the recording has it now.
func (p *Player) View() *store.View { return p.shown.View() }

// Changed fires when View has something new.
func (p *Player) Changed() <-chan struct{} { return p.shown.Changed() }

// Now is where the recording stands.
func (p *Player) Now() time.Time { return p.clock.position() }

// Title names the fleet that was recorded.
func (p *Player) Title() string {
	if p.index.header.Title == "" {
		return "recording"
	}
	return p.index.header.Title + " (recording)"
}

// Focus changes nothing: all there is was read.
func (*Player) Focus(watch.Focus) {}

// Refresh applies what is due.
func (p *Player) Refresh() { p.Advance() }

// Pace stops and goes on; the interval is that of the recording.
func (p *Player) Pace(pace watch.Pace) { p.Play(!pace.Paused) }

// Stats say how far the recording was played.
func (p *Player) Stats() watch.Stats {
	s := watch.Stats{Samples: p.count.Load()}
	if p.Interrupted() {
		s.Problem = "the recording is cut off"
	}
	return s
}

// Detail gives what the recording has of a node. Events, log lines and Kubernetes events are all
// those up to now: the query does not narrow them.
func (p *Player) Detail(_ context.Context, node string, want watch.Want, q watch.Query) watch.Detail {
	d := watch.Detail{Node: node, At: p.Now(), Errors: map[watch.Want]document.NodeError{}}
	n := p.shown.Node(node)
	missing := p.published.Load().give(&d, want, q)
	for w := range missing.Each() {
		message := NotIncluded
		switch {
		case w == watch.WantContainerLog && d.Logs != nil:
			continue // it is read only of a daemon that does not serve its log
		case w == watch.WantENIs && n != nil && n.NodeIPAM.ENIs != nil:
			d.ENIs = n.NodeIPAM.ENIs
			continue
		case w == watch.WantClusterPods:
		case n == nil:
			message = "the recording has no such node at this time"
		}
		d.Errors[w] = document.NodeError{Node: node, Reason: introspect.ReasonNotServed, Message: message}
	}
	return d
}

// NotIncluded says that something was not recorded.
const NotIncluded = "not included in this recording"

// Info describes the recording as its document does; the caller adds the name of the
// file.
func (p *Player) Info() document.Recording {
	r := recording(p.index.from, p.index.to, len(p.index.nodes), p.index.samples, p.Interrupted())
	r.Title = p.index.header.Title
	return r
}
