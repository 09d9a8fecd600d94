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
	Now func() time.Time // nil = time.Now
}

// Limits of the playback speed.
const (
	MinSpeed = 0.1
	MaxSpeed = 1000
)

// Player plays a recording. Its methods may be called from any goroutine. Seek and Advance take
// as long as it takes to read the file; all others return at once, even during a seek.
type Player struct {
	clock clock
	file  []byte
	index index // never modified
	shown *store.Store

	sought      atomic.Uint64 // number of seeks requested
	count       atomic.Uint64 // samples applied
	interrupted atomic.Bool   // the file is truncated or partly unreadable
	published   atomic.Pointer[library]
	errors      atomic.Pointer[[]bool] // see Survey

	work     sync.Mutex                   // guards what follows; held while the file is read
	store    *store.Store                 // played into: shown, or a new one during a seek
	library  *library                     // likewise: published, or a new one
	reader   *reader                      // at the next entry
	next     *entry                       // read but not yet due
	nextSize int                          // bytes of its line
	last     map[string]document.NodeIPAM // the complete sample of each node
	sizes    map[string]int               // bytes of the line of each node's sample
	size     int                          // sum of sizes
	played   time.Time                    // latest time among the applied entries
	repeat   int                          // remaining entries of a key frame that add nothing new
	broken   string                       // why playback cannot continue
	each     func(Sample)                 // if set, receives the samples instead of the store
}

// Sample is a sample of a node. Node is nil if the node is gone.
type Sample struct {
	At   time.Time // never earlier than in the previous Sample
	Name string
	Node *document.NodeIPAM
}

// Open reads a recording and starts playing at its beginning.
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

// Prepare is [store.Store.Prepare] for the fleet that is shown.
func (p *Player) Prepare(derive func(*store.Node) any) {
	p.work.Lock()
	defer p.work.Unlock()
	p.shown.Prepare(derive)
}

// OpensAt returns where the screens start to play.
func (p *Player) OpensAt() time.Time {
	if at := p.index.header.OpensAt; at != nil {
		return *at
	}
	return p.index.from
}

// Range returns the times of the first and the last entry.
func (p *Player) Range() (from, to time.Time) { return p.index.from, p.index.to }

// Interrupted reports that the file is truncated or partly unreadable: the part before that is
// played.
func (p *Player) Interrupted() bool { return p.interrupted.Load() }

// Run plays until ctx ends. Meanwhile it surveys the recording.
func (p *Player) Run(ctx context.Context) error {
	var survey sync.WaitGroup
	survey.Go(func() { p.Survey(ctx) })
	defer survey.Wait()
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

// Advance applies what is due by now. During a seek it does nothing: the seek ends with the
// fleet at its target time.
func (p *Player) Advance() {
	if !p.work.TryLock() {
		return
	}
	defer p.work.Unlock()
	p.apply(p.clock.position())
}

// Seek moves to a time within the recording, or to its nearest end. Now shows that time at
// once, View once the fleet of that time has been rebuilt; of several concurrent seeks the last
// one wins.
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
	p.store = p.shown.Another() // not shown while it is rebuilt
	p.library = newLibrary()
	p.begin(f)
	p.apply(to)
	p.published.Store(p.library)
	p.shown.Take(p.store)
	p.store = p.shown
}

// Samples passes each sample of the recording to each, in order and without key frames,
// whatever the current position.
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

// begin moves to a frame, with nothing applied.
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

// apply applies everything up to a time.
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
		// All nodes follow: redundant unless playback starts here.
		if p.count.Load() > 0 {
			p.repeat = e.Key.Nodes
		}
	case e.Readings != nil && p.each != nil: // not samples
	case e.Readings != nil:
		for _, r := range e.Readings {
			p.store.Remember(r.Subnet, upTo(r, e.At))
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

// Play resumes or pauses.
func (p *Player) Play(on bool) { p.clock.change(func() { p.clock.paused = !on }) }

// Speed sets the playback speed, within MinSpeed and MaxSpeed: 1 is real time.
func (p *Player) Speed(factor float64) {
	p.clock.change(func() { p.clock.speed = max(MinSpeed, min(MaxSpeed, factor)) })
}

// Rate returns the playback speed.
func (p *Player) Rate() float64 { return p.clock.rate() }

// View returns the fleet at the current position.
func (p *Player) View() *store.View { return p.shown.View() }

// Changed fires when View has something new.
func (p *Player) Changed() <-chan struct{} { return p.shown.Changed() }

// Now returns the current position.
func (p *Player) Now() time.Time { return p.clock.position() }

// Title names the recorded fleet.
func (p *Player) Title() string {
	if p.index.header.Title == "" {
		return "recording"
	}
	return p.index.header.Title + " (recording)"
}

// Focus does nothing: everything there is has been read.
func (*Player) Focus(watch.Focus) {}

// Refresh applies what is due.
func (p *Player) Refresh() { p.Advance() }

// Pace pauses and resumes; the interval is that of the recording.
func (p *Player) Pace(pace watch.Pace) { p.Play(!pace.Paused) }

// Stats reports how much has been played.
func (p *Player) Stats() watch.Stats {
	s := watch.Stats{Samples: p.count.Load()}
	if p.Interrupted() {
		s.Problem = "the recording is cut off"
	}
	return s
}

// Detail returns the recorded documents of a node. Events, log lines and Kubernetes events are
// all those up to now: the query does not narrow them.
func (p *Player) Detail(_ context.Context, node string, want watch.Want, q watch.Query) watch.Detail {
	d := watch.Detail{Node: node, At: p.Now(), Errors: map[watch.Want]document.NodeError{}}
	n := p.shown.Node(node)
	missing := p.published.Load().give(&d, want, q)
	for w := range missing.Each() {
		message := NotIncluded
		switch {
		case w == watch.WantContainerLog && d.Logs != nil:
			continue // it is only read if the daemon does not serve its log
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

// NotIncluded is the message for what was not recorded.
const NotIncluded = "not included in this recording"

// Info returns the recording's document; the caller adds the file name.
func (p *Player) Info() document.Recording {
	r := recording(p.index.from, p.index.to, len(p.index.nodes), p.index.samples, p.Interrupted())
	r.Title = p.index.header.Title
	return r
}
