package testenv

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// recorder is a test that may fail. limit is go test's for it; 0 is none.
type recorder struct {
	testing.TB
	deadline time.Time
	logs     []string
	failed   string
}

func (r *recorder) Helper() {}

func (r *recorder) Deadline() (time.Time, bool) { return r.deadline, !r.deadline.IsZero() }

func (r *recorder) Logf(format string, args ...any) {
	r.logs = append(r.logs, fmt.Sprintf(format, args...))
}

func (r *recorder) Errorf(format string, args ...any) { r.failed += fmt.Sprintf(format, args...) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// record runs f as a test with this limit on a clock of its own, and returns how long it took.
func record(t *testing.T, limit time.Duration, f func(r *recorder)) (r *recorder, took time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		defer waitedInVain.Store(false) // it was a recorder's
		began := time.Now()
		r = &recorder{TB: t} // with its context and clean-up
		if limit > 0 {
			r.deadline = began.Add(limit)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			f(r)
		}()
		<-ended
		took = time.Since(began)
	})
	return r, took
}

// after returns a condition that becomes true after d.
func after(d time.Duration) func() bool {
	at := time.Now().Add(d)
	return func() bool { return !time.Now().Before(at) }
}

func TestEventually(t *testing.T) {
	for _, x := range []struct {
		name        string
		limit, true time.Duration
		most        time.Duration
		logs        int
		failed      bool
	}{
		{"at once", 10 * time.Minute, 0, 0, 0, false},
		{"soon", 10 * time.Minute, 20 * time.Millisecond, 25 * time.Millisecond, 0, false},
		{"late", 10 * time.Minute, 9 * time.Minute, 9*time.Minute + 200*time.Millisecond, 36, false},
		{"half a minute before the limit", 10 * time.Minute, time.Hour, 9*time.Minute + 31*time.Second, 38, true},
		{"a tenth before a short limit", time.Minute, time.Hour, 55 * time.Second, 3, true},
		{"without a limit", 0, time.Hour - time.Second, time.Hour, 4*60 - 1, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			r, took := record(t, x.limit, func(r *recorder) { Eventually(r, "the pod runs", after(x.true)) })
			if took > x.most || !x.failed && took < x.true || (r.failed != "") != x.failed || len(r.logs) != x.logs {
				t.Errorf("%d logs after %s, want %d after at most %s; failed: %q", len(r.logs), took, x.logs, x.most, r.failed)
			}
			for _, text := range append(r.logs, r.failed) {
				if text != "" && !strings.Contains(text, "the pod runs") || strings.Contains(text, "CPU pressure: unknown") {
					t.Errorf("%q does not say what is awaited or the CPU's pressure", text)
				}
			}
		})
	}
}

func TestEventuallyErr_LastError(t *testing.T) {
	n := 0
	r, _ := record(t, 10*time.Minute, func(r *recorder) {
		EventuallyErr(r, "the pod runs", func() error { n++; return fmt.Errorf("error %d", n) })
	})
	for _, part := range []string{"the pod runs: waited in vain for 9m3", fmt.Sprintf(": error %d\n", n), "CPU pressure: avg10=", "goroutine "} {
		if !strings.Contains(r.failed, part) {
			t.Errorf("%.300q does not contain %q", r.failed, part)
		}
	}
	if len(r.logs) == 0 || !strings.Contains(r.logs[0], "waiting for the pod runs since 15s: error ") {
		t.Errorf("logged %q", r.logs)
	}
}

// Without a limit of go test's in sight a test gives up all the same, and sooner once another one
// has; how much sooner depends on how busy this machine is.
func TestEventually_Patience(t *testing.T) {
	r, took := record(t, 100*time.Hour, func(r *recorder) { Eventually(r, "the pod runs", func() bool { return false }) })
	if took < patience || !strings.Contains(r.failed, "the pod runs: waited in vain for ") || !strings.Contains(r.failed, "counts as 10m0s") {
		t.Errorf("after %s: %.200q", took, r.failed)
	}
	r, took = record(t, 100*time.Hour, func(r *recorder) { Receive(r, "a number", make(chan int)) })
	if took < patience || !strings.Contains(r.failed, "counts as 10m0s") {
		t.Errorf("after %s: %.200q", took, r.failed)
	}
	_, took = record(t, 100*time.Hour, func(r *recorder) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			Eventually(r, "the first", func() bool { return false })
		}()
		<-done
		began := time.Now()
		defer func() {
			if waited := time.Since(began); waited < afterFailure || !strings.Contains(r.failed, "counts as 2m0s") {
				t.Errorf("the second wait took %s: %.200q", waited, r.failed)
			}
		}()
		r.failed = ""
		Eventually(r, "the second", func() bool { return false })
	})
	if took < patience+afterFailure {
		t.Errorf("both took %s", took)
	}
}

func TestWaiting(t *testing.T) {
	start := time.Unix(1700000000, 0)
	for _, x := range []struct {
		name         string
		limit        time.Duration // go test's; 0: none
		tasks        float64       // for each CPU
		failedBefore bool
		step, after  time.Duration // looks at the condition, and when the last one gives up; 0: not within ten hours
	}{
		{"idle", 12 * time.Hour, 0.1, false, time.Second, 10 * time.Minute},
		{"one task for each CPU", 12 * time.Hour, 1, false, time.Second, 10 * time.Minute},
		{"a busy machine", 12 * time.Hour, 6, false, time.Second, time.Hour},
		{"another test has failed", 12 * time.Hour, 1, true, time.Second, 2 * time.Minute},
		{"another test has failed, busy", 12 * time.Hour, 6, true, time.Second, 12 * time.Minute},
		{"a condition that takes long to look at", 12 * time.Hour, 1, false, 7 * time.Minute, 14 * time.Minute},
		{"go test's limit comes first", time.Hour, 60, false, time.Second, time.Hour},
		{"without go test's limit", 0, 1, false, time.Minute, 0},
		{"without go test's limit, another has failed", 0, 1, true, time.Minute, 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			p := waiting{until: start}
			if x.limit > 0 {
				p.limit = start.Add(x.limit)
			}
			var gaveUp time.Duration
			for at := time.Duration(0); at <= 10*time.Hour && gaveUp == 0; at += x.step {
				if p.endedAt(start.Add(at), x.tasks, x.failedBefore) {
					gaveUp = at
				}
			}
			if gaveUp.Round(time.Minute) != x.after {
				t.Errorf("gave up after %s, want %s", gaveUp, x.after)
			}
		})
	}
}

// A condition that hangs is named too, before go test's limit ends the package.
func TestEventually_ConditionHangs(t *testing.T) {
	r, _ := record(t, 10*time.Minute, func(r *recorder) {
		Eventually(r, "the node answers", func() bool { <-time.After(50 * time.Second); return true })
	})
	if len(r.logs) != 3 || r.failed != "" {
		t.Errorf("logged %q, failed %q", r.logs, r.failed)
	}
}

func TestReceive(t *testing.T) {
	var got int
	r, took := record(t, 10*time.Minute, func(r *recorder) {
		c := make(chan int)
		go func() { <-time.After(50 * time.Second); c <- 7 }()
		got = Receive(r, "a number", c)
	})
	if got != 7 || took != 50*time.Second || r.failed != "" || len(r.logs) != 3 {
		t.Errorf("%d after %s, failed %q, logged %q", got, took, r.failed, r.logs)
	}
	r, took = record(t, 10*time.Minute, func(r *recorder) { Receive(r, "a number", make(chan int)) })
	if took != 570*time.Second || !strings.HasPrefix(r.failed, "a number: waited in vain for 9m30s") {
		t.Errorf("failed %q after %s", r.failed, took)
	}
	r, took = record(t, 0, func(r *recorder) {
		ended := make(chan int)
		close(ended)
		Receive(r, "the end", ended)
	})
	if took != 0 || r.failed != "" {
		t.Errorf("a closed channel: failed %q after %s", r.failed, took)
	}
}

func TestContext(t *testing.T) {
	for limit, want := range map[time.Duration]time.Duration{10 * time.Minute: 570 * time.Second, 0: time.Hour} {
		_, took := record(t, limit, func(r *recorder) {
			select {
			case <-Context(r).Done():
			case <-time.After(time.Hour):
			}
		})
		if took != want {
			t.Errorf("with a limit of %s it ends after %s, want %s", limit, took, want)
		}
	}
}

func TestLeft(t *testing.T) {
	for limit, want := range map[time.Duration]time.Duration{10 * time.Minute: 570 * time.Second, time.Minute: 54 * time.Second, 0: 24 * time.Hour} {
		record(t, limit, func(r *recorder) {
			if got := Left(r); got != want {
				t.Errorf("of a limit of %s are left %s, want %s", limit, got, want)
			}
		})
	}
}

func TestNever(t *testing.T) {
	for _, x := range []struct {
		bad, polls int
		failed     string
	}{{0, 5, ""}, {6, 5, ""}, {1, 1, "a second pod, at poll 1 of 5"}, {5, 5, "a second pod, at poll 5 of 5"}} {
		polls := 0
		r, took := record(t, time.Hour, func(r *recorder) {
			Never(r, 5, "a second pod", func() bool { polls++; return polls == x.bad })
		})
		if polls != x.polls || r.failed != x.failed || took != time.Duration(polls-1)*10*time.Millisecond {
			t.Errorf("bad at %d: %d polls in %s, failed %q", x.bad, polls, took, r.failed)
		}
	}
}

func TestWithin(t *testing.T) {
	for _, x := range []struct {
		takes  time.Duration
		failed string
	}{{time.Second, ""}, {time.Second + 1, "the answer took 1.000000001s, at most 1s allowed"}, {time.Minute, "the answer took 1m0s, at most 1s"}} {
		ended, inTime := false, false
		r, took := record(t, time.Hour, func(r *recorder) {
			inTime = Within(r, time.Second, "the answer", func() { <-time.After(x.takes); ended = true })
		})
		if took != x.takes || !ended || inTime != (x.failed == "") || !strings.HasPrefix(r.failed, x.failed) || (r.failed != "") != (x.failed != "") {
			t.Errorf("%s: ended %v after %s, failed %q", x.takes, ended, took, r.failed)
		}
	}
}

// Nothing goes on when f ends the test: the bubble would not end.
func TestWithin_Fatal(t *testing.T) {
	r, took := record(t, time.Hour, func(r *recorder) {
		Within(r, time.Hour, "the answer", func() { r.Fatalf("no answer") })
	})
	if r.failed != "no answer" || took != 0 {
		t.Errorf("failed %q after %s", r.failed, took)
	}
}

// meterVar makes TestWithin_Starved the process that starves.
const meterVar = "CNICTL_TESTENV_METER"

// A process that is stopped meanwhile starves, and is not blamed for it.
func TestWithin_Starved(t *testing.T) {
	const bound = 100 * time.Millisecond
	if os.Getenv(meterVar) != "" {
		continued := make(chan os.Signal, 1)
		signal.Notify(continued, syscall.SIGCONT)
		Within(t, bound, "the stop", func() {
			if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
				t.Error(err)
			}
			<-continued // another thread may stop first
		})
		return
	}
	t.Parallel()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), meterVar+"=1")
	var out strings.Builder
	child.Stdout, child.Stderr = &out, &out
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	EventuallyErr(t, "the child stops", func() error {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child.Process.Pid))
		if err == nil && !strings.Contains(string(stat), ") T ") {
			err = errors.New(string(stat))
		}
		return err
	})
	<-time.After(3 * bound)
	if err := child.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err != nil || !strings.Contains(out.String(), "instead of 100ms, but starved (wake-ups late by") {
		t.Errorf("%v: %s", err, &out)
	}
}

func TestStarvation_Scale(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		took, late time.Duration
		runnable   float64
		want       time.Duration // for a bound of 1 s
	}{
		{0, 0, 0, time.Second},
		{5 * time.Second, 0, 0, time.Second},
		{5 * time.Second, 500 * time.Millisecond, 8, time.Second}, // a tenth is normal, whatever else runs
		{5 * time.Second, 501 * time.Millisecond, 3, 6 * time.Second},
		{5 * time.Second, time.Second, 0, 2500 * time.Millisecond}, // no /proc/loadavg
		{10 * time.Second, 8 * time.Second, 2, 10 * time.Second},
		{10 * time.Second, 10 * time.Second, 2, 200 * time.Second}, // never woken at all
		{10 * time.Second, 11 * time.Second, 2, 200 * time.Second},
	} {
		if got := (starvation{x.late, x.runnable}).scale(time.Second, x.took); got.Round(time.Millisecond) != x.want {
			t.Errorf("late by %s in %s, %g runnable: %s, want %s", x.late, x.took, x.runnable, got, x.want)
		}
		// Without the starvation it took as much less than it did as the bound is more.
		most := float64(x.took) * float64(time.Second) / float64(x.want)
		if got := (starvation{x.late, x.runnable}).without(x.took); got.Round(time.Millisecond) != time.Duration(most).Round(time.Millisecond) {
			t.Errorf("late by %s in %s, %g runnable: without it %s, want %s", x.late, x.took, x.runnable, got, time.Duration(most))
		}
	}
}

func TestRunnable(t *testing.T) {
	t.Parallel()
	if n, ok := runnable(); !ok || n < 1 {
		t.Errorf("%g, %v: at least this test runs", n, ok)
	}
}
