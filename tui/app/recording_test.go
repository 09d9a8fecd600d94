package app

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/colorprofile"

	"cnictl/daemon/fleet/watch"
	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
)

// recorded is a fleet that can seek.
type recorded struct {
	*pagetest.Source
	at    time.Time
	rate  float64
	seeks []time.Time
	track watch.Track
}

func (r *recorded) Range() (from, to time.Time) {
	return pagetest.Start().Add(-20 * time.Minute), pagetest.Start().Add(10 * time.Minute)
}
func (r *recorded) Seek(to time.Time)    { r.at, r.seeks = to, append(r.seeks, to) }
func (r *recorded) Speed(factor float64) { r.rate = factor }
func (r *recorded) Rate() float64        { return r.rate }
func (r *recorded) Now() time.Time       { return r.at }
func (r *recorded) Track() watch.Track   { return r.track }

func newRecorded(t *testing.T) (*bench, *recorded) {
	t.Helper()
	source := &recorded{Source: pagetest.NewSource(20, 5), at: pagetest.Start(), rate: 1}
	b := newBench(t, source.Source, func(o *Options) { o.Source = source })
	b.resize(120, 40)
	b.change()
	return b, source
}

func TestRecordingSeeks(t *testing.T) {
	t.Parallel()
	b, source := newRecorded(t)
	from, end := source.Range()
	for _, step := range []struct {
		key  string
		want time.Time
	}{
		{"{", pagetest.Start().Add(-time.Minute)},
		{"}", pagetest.Start()},
		{"(", pagetest.Start().Add(-10 * time.Minute)},
		{"(", from},
		{"{", from},
		{")", from.Add(10 * time.Minute)},
		{")", from.Add(20 * time.Minute)},
		{")", end},
		{"}", end},
	} {
		b.press(step.key)
		if !source.at.Equal(step.want) {
			t.Errorf("%s goes to %s, want %s", step.key, source.at, step.want)
		}
	}
	b.sees(t, "at the end", "30m of 30m")
}

// TestTimeline: it shows what was played, when nodes had errors, and the marks, also on the last cell.
func TestTimeline(t *testing.T) {
	t.Parallel()
	r := &recorded{}
	from, end := r.Range()
	draw := func(at time.Time, track watch.Track) string {
		r.track = track
		var b strings.Builder
		for _, c := range timeline(r, at, 10) {
			b.WriteString(c.ASCII)
		}
		return b.String()
	}
	for want, got := range map[string]string{
		"..........": draw(from, watch.Track{}),
		"#####.....": draw(from.Add(15*time.Minute), watch.Track{}),
		"##+##==...": draw(from.Add(15*time.Minute), watch.Track{Errors: []bool{2: true, 5: true, 6: true, 9: false}}),
		"#+###.....": draw(from.Add(15*time.Minute), watch.Track{Errors: []bool{19: true, 99: false}}),
		"###*#.....": draw(from.Add(15*time.Minute), watch.Track{Marks: []time.Time{from.Add(9 * time.Minute), from.Add(-time.Hour)}}),
		"#########*": draw(end, watch.Track{Marks: []time.Time{end}}),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestRecordingSeeksOnceAtATime: keys pressed during a seek move its target. No second seek
// starts at the same time.
func TestRecordingSeeksOnceAtATime(t *testing.T) {
	t.Parallel()
	b, source := newRecorded(t)
	_, cmd := b.Update(press("{"))
	for range 3 {
		if _, more := b.Update(press("{")); more != nil {
			t.Fatal("a second search began")
		}
	}
	b.run(cmd)
	want := []time.Time{pagetest.Start().Add(-time.Minute), pagetest.Start().Add(-4 * time.Minute)}
	if len(source.seeks) != 2 || !source.seeks[0].Equal(want[0]) || !source.seeks[1].Equal(want[1]) {
		t.Errorf("sought %v, want %v", source.seeks, want)
	}
}

func TestRecordingSeeksWhilePaused(t *testing.T) {
	t.Parallel()
	b, source := newRecorded(t)
	b.press("p")
	b.sees(t, "paused", "PAUSED 14:02:11")
	sample := b.view.Nodes[0].NodeIPAM
	sample.Summary.InstanceType = "x9.seen"
	source.Put(sample)
	b.press("{")
	b.sees(t, "PAUSED 14:01:11", "x9.seen")
}

func TestRecordingsSpeed(t *testing.T) {
	t.Parallel()
	b, source := newRecorded(t)
	for _, step := range []struct {
		key  string
		want float64
	}{{">", 2}, {">", 5}, {"<", 2}, {"<", 1}, {"<", 0.5}, {"<", 0.25}, {"<", 0.1}, {"<", 0.1}} {
		b.press(step.key)
		if source.rate != step.want {
			t.Fatalf("%s makes it %v, want %v", step.key, source.rate, step.want)
		}
	}
	source.rate = 3
	b.press(">")
	if source.rate != 5 {
		t.Errorf("from 3 it goes to %v", source.rate)
	}
	b.press("+")
	b.sees(t, "change its speed")
	b.press("?")
	b.sees(t, "10 min back", "play faster")
}

// TestHeader_KeepsTheCluster: of everything in the header, the cluster's name is dropped last, and
// PAUSED stays with the problems. An ARN is shortened to its last part.
func TestHeader_KeepsTheCluster(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"prod-eu", "arn:aws:eks:eu-west-1:123456789012:cluster/prod-eu"} {
		fleet := pagetest.NewSource(412, 5)
		fleet.Name = name
		b := newBench(t, fleet, nil)
		b.change()
		b.press("p")
		for _, size := range sizes {
			b.resize(size[0], size[1])
			if l, _, _ := strings.Cut(b.text(t), "\n"); size[0] < 200 && !strings.HasPrefix(l, " cnictl prod-eu ") || !strings.Contains(l, "PAUSED") || !strings.Contains(l, "12 errors") {
				t.Errorf("%s at %v: %q", name, size, l)
			}
		}
	}
}

// TestLiveFleetCannotSeek: a live fleet has no such keys, says so and does not show them.
func TestLiveFleetCannotSeek(t *testing.T) {
	t.Parallel()
	b := newFlow(t, 5)
	b.press("{")
	b.sees(t, "only a recording can be rewound")
	b.press("?")
	b.lacks(t, "play faster")
}

// TestRecordingFrames: a recording gets its own line if there is room.
func TestRecordingFrames(t *testing.T) {
	t.Parallel()
	for _, size := range sizes {
		for look, profile := range map[string]colorprofile.Profile{"": colorprofile.NoTTY, "-dark": colorprofile.ANSI} {
			t.Run(fmt.Sprintf("%dx%d%s", size[0], size[1], look), func(t *testing.T) {
				t.Parallel()
				b, source := newRecorded(t)
				source.track = watch.Track{Errors: []bool{6: true, 7: true, 14: true, 19: false}, Marks: []time.Time{pagetest.Start().Add(-5 * time.Minute)}}
				b.colours = strings.TrimPrefix(look, "-")
				b.recolour()
				b.resize(size[0], size[1])
				picture(t, b, size, profile)
			})
		}
	}
}

func TestRecordingHasNoContexts(t *testing.T) {
	t.Parallel()
	b, _ := newRecorded(t)
	b.press(":")
	b.typed("ctx")
	b.press("enter")
	b.sees(t, "a recording shows one cluster")
}

// TestRecording_PausedReads: a paused recording is still read. A screen opened during the pause has
// the recorded documents at once, and keeps reading what the cursor moves to.
func TestRecording_PausedReads(t *testing.T) {
	t.Parallel()
	fleet := pagetest.Fleet()
	source := &recorded{Source: fleet, at: pagetest.Start(), rate: 1}
	b := newBench(t, fleet, func(o *Options) { o.Source = source })
	b.resize(120, 40)
	b.change()
	b.press("p")
	for _, x := range []struct {
		command string
		want    watch.Want
	}{{"trunks", watch.WantPods}, {"doctor", watch.WantFailures}, {"pod shop/waits", watch.WantFailures | watch.WantPods}} {
		var read watch.Want
		b.reads = nil
		b.press(":")
		b.typed(x.command)
		b.press("enter")
		for len(b.reads) > 0 {
			q := b.reads[0]
			b.reads = b.reads[1:]
			read |= q.Want
			d := fleet.Documents(q.Node, q.Want, q.Query)
			if d.ClusterPods != nil {
				d.ClusterPods.Pods = slices.DeleteFunc(d.ClusterPods.Pods, func(p watch.Pod) bool { return !q.Query.Find.Matches(p) })
			}
			b.send(pages.Loaded{ID: q.ID, Want: q.Want, Detail: d})
		}
		if read&x.want != x.want {
			t.Errorf("%s read documents %b, want %b", x.command, read, x.want)
		}
		b.lacks(t, "reading ip-")
	}
	if b.tick(); !b.ticking {
		t.Error("no seconds are counted: documents that fail are not asked for again")
	}
}
