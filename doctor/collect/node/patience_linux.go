package node

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// longest is how many times its limit a source may take while the reading goes on.
const longest = 10

// ticks is how many times within a limit a source is looked at.
const ticks = 8

// progress counts the signs that the reading of a source goes on: something was read, or a
// program that was started works, or waits for a processor. Each source has its own, in its
// context: one that works must not give time to one that hangs.
type progress struct {
	mu       sync.Mutex
	signs    int
	programs map[int]look // that run, by process
}

// look is how long a process had worked at a time.
type look struct {
	at     time.Time
	worked time.Duration
}

type progressKey struct{}

// withProgress returns the context of a source, with a progress unless it has one.
func withProgress(ctx context.Context) context.Context {
	if ctx.Value(progressKey{}) != nil {
		return ctx
	}
	return context.WithValue(ctx, progressKey{}, &progress{})
}

// progressOf returns the progress of the source that ctx is of, or one that nobody looks at.
func progressOf(ctx context.Context) *progress {
	if p, ok := ctx.Value(progressKey{}).(*progress); ok {
		return p
	}
	return &progress{}
}

// goesOn notes that something was read.
func (p *progress) goesOn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.signs++
}

// watch looks at what a program does until the returned function is called.
func (p *progress) watch(pid int) (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.programs == nil {
		p.programs = map[int]look{}
	}
	p.programs[pid] = look{time.Now(), worked(pid)}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.programs, pid)
	}
}

// look returns the number of signs so far. A program that was at work for a twentieth of the
// time gives one: one that hangs may wake up now and then.
func (p *progress) look() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for pid, last := range p.programs {
		now := look{time.Now(), worked(pid)}
		passed := now.at.Sub(last.at)
		if passed < 10*time.Millisecond { // too short a time to say
			continue
		}
		if now.worked-last.worked >= passed/20 {
			p.signs++
		}
		p.programs[pid] = now
	}
	return p.signs
}

// worked returns for how long a process has run, and been ready to run while others did, 0 where
// the kernel does not say.
func worked(pid int) (sum time.Duration) {
	tasks, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task/*/schedstat")) // the pattern is valid
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if f := strings.Fields(string(text)); err == nil && len(f) == 3 {
			ran, _ := strconv.ParseInt(f[0], 10, 64) // see the kernel's sched-stats.rst
			waited, _ := strconv.ParseInt(f[1], 10, 64)
			sum += time.Duration(ran + waited)
		}
	}
	return sum
}

// within returns a context that ends as if its deadline were exceeded, when the reading of its
// source has not gone on for a time, and in any case after longest times that. It counts ticks,
// which this process does not get while it gets no processor: a node that is busy makes a source
// slow, only one that hangs makes it missing.
func within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx = withProgress(ctx)
	p := progressOf(ctx)
	l := &limited{Context: ctx, done: make(chan struct{})}
	stopped, stop := context.WithCancel(ctx)
	go func() {
		every := max(limit/ticks, time.Millisecond)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		last := p.look()
		for idle, all := 0, 0; idle < ticks && all < ticks*longest; all++ {
			select {
			case <-stopped.Done():
				l.end(stopped.Err())
				return
			case <-ticker.C:
			}
			if now := p.look(); now == last {
				idle++
			} else {
				idle, last = 0, now
			}
		}
		l.end(context.DeadlineExceeded)
	}()
	return l, stop
}

// spare is within for the programs that a source can do without: they end while there is time left
// for the rest of it.
func (c *collector) spare(ctx context.Context) (context.Context, context.CancelFunc) {
	return within(ctx, c.Timeout/2)
}

// limited is the context of within.
type limited struct {
	context.Context
	done chan struct{}

	mu  sync.Mutex
	err error
}

func (l *limited) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
	close(l.done)
}

func (l *limited) Done() <-chan struct{} { return l.done }

func (l *limited) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
