package frame

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// stop is an error that ends a run.
type stop struct{ error }

// Check ends the run if there is an error. Programs that measure recover from none, so their code
// reads as a test's does with Fatal: Attempt turns the panic into an error.
func Check(err error) {
	if err != nil {
		panic(stop{err})
	}
}

// Attempt runs f and returns the error that ended it.
func Attempt(f func()) (err error) {
	defer func() {
		p := recover()
		if s, ok := p.(stop); ok {
			err = s.error
		} else if p != nil {
			panic(p)
		}
	}()
	f()
	return nil
}

// Each calls f for 0 to n-1, at most width at a time, until the context or a call ends with an error.
func Each(ctx context.Context, n, width int, f func(i int)) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(width)
	for i := range n {
		group.Go(func() error {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			return Attempt(func() { f(i) })
		})
	}
	return group.Wait()
}

// Pause waits for d or until the context ends.
func Pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Memory returns a line of /proc/PID/status in bytes: VmRSS, RssAnon, VmHWM.
func Memory(pid int, field string) (kib float64, _ error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, after, _ := bytes.Cut(text, []byte("\n"+field+":"))
	_, err = fmt.Sscan(string(after), &kib)
	return kib * 1024, err
}

// CPU returns the processor time of a process so far, in nanoseconds and including ended threads:
// that of its clock, whose number holds the process (clock_getcpuclockid(3)).
func CPU(pid int) time.Duration {
	const scheduled = 2
	return Clock(int32(^pid<<3 | scheduled))
}

// Clock reads one of the kernel's clocks.
func Clock(id int32) time.Duration {
	var t unix.Timespec
	Check(unix.ClockGettime(id, &t))
	return time.Duration(t.Nano())
}

// Quantile returns a quantile of an unsorted list: 1 is the maximum. For an empty list it is 0.
func Quantile(list []time.Duration, q float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
