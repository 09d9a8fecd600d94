package testenv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// This is the one file of the tests that names durations on the real clock: how long a test waits
// for something is decided here, by what the machine could do in the meantime, and no test has a
// limit of its own. testenv/rules/archtest (rule "waiting") keeps it so.

const (
	// patience is how long a test waits for one condition on an idle machine: several times what the
	// slowest of them takes there, so that a change that breaks one ends in minutes and not at go
	// test's limit. A busy machine gets more, see waiting.
	patience = 10 * time.Minute
	// afterFailure is the patience once a wait of the same process was in vain.
	afterFailure = 2 * time.Minute
	// lastWords is how long before go test's limit a test gives up, to say what it waited for
	// and to clean up: the limit itself ends the whole package.
	lastWords = 30 * time.Second
	// logEvery is how often a waiting test says what it waits for.
	logEvery = 15 * time.Second
	// longestPause lies between two looks at a condition.
	longestPause = 200 * time.Millisecond
)

// Eventually waits until ok returns true.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	EventuallyErr(t, what, func() error {
		if !ok() {
			return errNotYet
		}
		return nil
	})
}

var errNotYet = errors.New("not yet")

// EventuallyErr waits until check returns nil. A test that waits in vain ends with check's last
// error and the stacks of all goroutines: after ten minutes in which the machine was idle, or
// shortly before go test's limit.
func EventuallyErr(t testing.TB, what string, check func() error) {
	t.Helper()
	w := watch(t, what)
	defer w.stop()
	for {
		err := check()
		if err == nil {
			return
		}
		w.says(err)
		if w.patience.ended() {
			w.gaveUp(t, err)
		}
		w.pause()
	}
}

// Receive waits for a value from c, or for c's end.
func Receive[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	w := watch(t, what)
	defer w.stop()
	poll := time.NewTicker(longestPause)
	defer poll.Stop()
	for {
		select {
		case v := <-c:
			return v
		case <-poll.C:
			if w.patience.ended() {
				w.gaveUp(t, errNotYet)
			}
		}
	}
}

// Never polls bad n times, about 10 ms apart, and fails the test once it returns true. It
// counts polls and not time because what could go wrong is as slow as the machine.
func Never(t testing.TB, n int, what string, bad func() bool) {
	t.Helper()
	for i := range n {
		if i > 0 {
			<-time.After(10 * time.Millisecond)
		}
		if bad() {
			t.Fatalf("%s, at poll %d of %d", what, i+1, n)
		}
	}
}

// Within fails the test if f takes longer than d, and reports whether it was in time. Where the
// machine starved this process in the meantime, the bound grows with the measured starvation,
// and the log says so. f runs to its end in any case.
func Within(t testing.TB, d time.Duration, what string, f func()) (inTime bool) {
	t.Helper()
	w := watch(t, what)
	defer w.stop()
	m := startMeter()
	defer m.stop() // f may end the test
	took := Took(f)
	s := m.stop()
	bound := s.scale(d, took)
	switch {
	case took > bound:
		t.Errorf("%s took %s, at most %s allowed (%s; CPU pressure: %s)", what, took, bound, s, pressure())
	case took > d:
		t.Logf("%s took %s instead of %s, but starved (%s)", what, took, d, s)
	}
	return took <= bound
}

// Soon is a deadline for tests of what happens at a deadline. Nothing may depend on when it
// comes.
func Soon() time.Time { return time.Now().Add(50 * time.Millisecond) }

// Later is a deadline that no test lives to see, for tests of what is decided because of it.
func Later() time.Time { return time.Now().Add(24 * time.Hour) }

// Took returns how long f takes: for lower bounds, which no busy machine breaks, and for logs.
func Took(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

// Unstarved returns how long f would have taken had the machine not starved this process: for
// bounds on the median or the longest of several. What has a bound of its own is for Within.
func Unstarved(f func()) time.Duration {
	m := startMeter()
	defer m.stop() // f may end the test
	took := Took(f)
	return m.stop().without(took)
}

// Context ends with the test and shortly before go test's limit, for calls that wait by
// themselves and report what they waited for when their context ends.
func Context(t testing.TB) context.Context {
	t.Helper()
	end := giveUpAt(t)
	if end.IsZero() {
		return t.Context()
	}
	ctx, cancel := context.WithDeadline(t.Context(), end)
	t.Cleanup(cancel)
	return ctx
}

// Left is the time until shortly before go test's limit, for calls that insist on a limit.
func Left(t testing.TB) time.Duration {
	t.Helper()
	if end := giveUpAt(t); !end.IsZero() {
		return time.Until(end)
	}
	return time.Until(Later())
}

// giveUpAt returns when a test stops waiting; zero if go test has no limit.
func giveUpAt(t testing.TB) time.Time {
	limited, ok := t.(interface{ Deadline() (time.Time, bool) }) // all but *testing.B
	if !ok {
		return time.Time{}
	}
	deadline, ok := limited.Deadline()
	if !ok {
		return time.Time{}
	}
	return deadline.Add(-min(lastWords, max(0, time.Until(deadline)/10)))
}

// waitedInVain is set once a wait of this process was given up: what else waits then says what
// else is broken, and need not take as long to say it.
var waitedInVain atomic.Bool

// waiting is how much of its patience a test has used up. A second counts as much less as there
// are tasks that want each CPU: a condition that needs computing comes that much later.
type waiting struct {
	limit time.Time // shortly before go test's; zero if go test has none: then a test waits for ever
	until time.Time // what was counted last
	spent time.Duration
}

// ended counts the time since its last call.
func (p *waiting) ended() bool {
	tasks, _ := runnable()
	return p.endedAt(time.Now(), tasks/float64(runtime.NumCPU()), waitedInVain.Load())
}

// endedAt is ended at a time, with this many tasks for each CPU.
func (p *waiting) endedAt(now time.Time, tasks float64, failedBefore bool) bool {
	p.spent += time.Duration(float64(now.Sub(p.until)) / max(1, tasks))
	p.until = now
	if p.limit.IsZero() {
		return false
	}
	most := patience
	if failedBefore {
		most = afterFailure
	}
	return p.spent >= most || !now.Before(p.limit)
}

// watcher logs every 15 s what a test waits for, also while the polled function hangs.
type watcher struct {
	what     string
	began    time.Time
	patience waiting
	ended    chan struct{}
	done     sync.WaitGroup

	mu   sync.Mutex
	last error
}

func watch(t testing.TB, what string) *watcher {
	t.Helper()
	now := time.Now()
	w := &watcher{what: what, began: now, patience: waiting{limit: giveUpAt(t), until: now}, ended: make(chan struct{})}
	w.done.Go(func() {
		tick := time.NewTicker(logEvery)
		defer tick.Stop()
		for {
			select {
			case <-w.ended:
				return
			case <-tick.C:
				w.mu.Lock()
				last := cmp.Or(w.last, errNotYet)
				w.mu.Unlock()
				t.Logf("waiting for %s since %s: %v (CPU pressure: %s)", what, w.waited(), last, pressure())
			}
		}
	})
	return w
}

func (w *watcher) stop() {
	close(w.ended)
	w.done.Wait() // a test that has ended must not log
}

func (w *watcher) says(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = err
}

func (w *watcher) gaveUp(t testing.TB, last error) {
	t.Helper()
	waitedInVain.Store(true)
	t.Fatalf("%s: waited in vain for %s, which counts as %s on an idle machine: %v\nCPU pressure: %s\n%s",
		w.what, w.waited(), w.patience.spent.Round(time.Second), last, pressure(), stacks())
}

func (w *watcher) waited() time.Duration { return time.Since(w.began).Round(time.Millisecond) }

// pause is longer the longer the test has waited: many conditions run programs on a node, and
// a test that only waits must leave the CPU to others.
func (w *watcher) pause() {
	<-time.After(min(max(time.Since(w.began)/10, time.Millisecond), longestPause))
}

// starvation says how much of the CPU a process did not get.
type starvation struct {
	late     time.Duration // sum of how late its wake-ups were
	runnable float64       // mean number of runnable tasks of the machine, per CPU
}

// scale returns the bound for something that should take at most d and took this long. Wake-ups
// that were late for a tenth of the time are starvation. Then whoever computes shares a CPU with
// all that is runnable, and who only waits is as late as we were; the double allows for a peak.
func (s starvation) scale(d, took time.Duration) time.Duration {
	if s.late*10 <= took || took <= 0 {
		return d
	}
	slower := float64(took) / float64(max(took-s.late, took/100))
	return time.Duration(float64(d) * 2 * max(slower, s.runnable))
}

// without returns the longest bound that scale lets something pass that took this long.
func (s starvation) without(took time.Duration) time.Duration {
	if took <= 0 {
		return took
	}
	return time.Duration(float64(took) * float64(took) / float64(s.scale(took, took)))
}

func (s starvation) String() string {
	return fmt.Sprintf("wake-ups late by %s, %.1f runnable tasks per CPU", s.late.Round(time.Millisecond), s.runnable)
}

// meter measures starvation: it wants to wake up every 5 ms and adds up how late it is.
type meter struct {
	stop  func() starvation // may be called again
	ended chan struct{}
	found starvation
}

func startMeter() *meter {
	m := &meter{ended: make(chan struct{})}
	var running sync.WaitGroup
	began := time.Now()
	running.Go(func() { m.run(began) })
	m.stop = sync.OnceValue(func() starvation {
		close(m.ended)
		running.Wait()
		return m.found
	})
	return m
}

func (m *meter) run(slept time.Time) {
	const step = 5 * time.Millisecond
	var s starvation
	sum, n := 0.0, 0
	for ended := false; !ended; {
		timer := time.NewTimer(step)
		select {
		case <-timer.C:
		case <-m.ended: // perhaps during a wake-up that was late
			timer.Stop()
			ended = true
		}
		now := time.Now()
		s.late += max(0, now.Sub(slept)-step)
		slept = now
		if running, ok := runnable(); ok {
			sum, n = sum+running, n+1
		}
	}
	s.runnable = sum / float64(max(n, 1)) / float64(runtime.NumCPU())
	m.found = s
}

// runnable returns the number of the machine's tasks that run or could run (proc_loadavg(5)).
func runnable() (n float64, ok bool) {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, false
	}
	var one, five, fifteen float64
	_, err = fmt.Sscanf(string(b), "%f %f %f %f/", &one, &five, &fifteen, &n)
	return n, err == nil
}

// pressure is the kernel's account of tasks that wait for a CPU: its line "some".
func pressure() string {
	b, err := os.ReadFile("/proc/pressure/cpu")
	if err != nil {
		return "unknown"
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimPrefix(line, "some ")
}

func stacks() []byte {
	buf := make([]byte, 1<<20)
	return buf[:runtime.Stack(buf, true)]
}
