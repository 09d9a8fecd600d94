package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/sync/errgroup"
	"golang.org/x/term"

	"cnictl/daemon/fleet/watch"
	"cnictl/tui/draw"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
)

const (
	frameRate = 60               // most frames per second; a key waits for the next one
	readLimit = 15 * time.Second // for reading a page's documents
)

// Run shows the screens until the user quits, which is not an error. After a panic, it
// restores the terminal before the panic is printed.
func Run(ctx context.Context, o Options) error {
	env := environ(o.Environ)
	if err := draw.CheckTheme(o.Theme); err != nil {
		return err
	}
	keys, err := keymap.New(o.Keys)
	if err != nil {
		return err
	}
	if o.Screen.Screen != "" {
		name := screenNamed(o.Screen.Screen)
		if name == "" {
			return fmt.Errorf("no screen named %q; the screens are: %s", o.Screen.Screen, strings.Join(Screens(), ", "))
		}
		o.Screen.Screen = name
	}
	if o.Plain || env.accessible() {
		return runPlain(ctx, o, env, keys)
	}
	if !isTerminal(o.Out) || env.dumb() {
		return ErrNoTerminal
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	files := &keeper{path: o.State}
	queue := newCallQueue()
	m := newModel(o, env, keys, load(o.State), effectsOf(ctx, o, files, queue.add))
	m.term.Light = env.light()
	m.recolour()
	// Signals cancel ctx. If the program handled them as well, its signal goroutine could
	// block forever on a loop that has already ended with ctx, and the program would wait
	// forever for that goroutine.
	program := tea.NewProgram(m, tea.WithContext(ctx), tea.WithoutSignalHandler(), tea.WithInput(o.In), tea.WithOutput(o.Out),
		tea.WithEnvironment(o.Environ), tea.WithFPS(frameRate))
	var group errgroup.Group
	group.Go(func() error { feed(ctx, o.Source, program.Send); return nil })
	group.Go(func() error { queue.run(ctx, o.Source); return nil })
	_, err = program.Run()
	cancel()
	_ = group.Wait() // they return no error
	switch {
	case err == nil && m.contexts.switched:
		return ErrSwitched
	case errors.Is(err, tea.ErrProgramPanic):
		return fmt.Errorf("the screens failed: %w", err)
	case errors.Is(err, tea.ErrInterrupted), errors.Is(err, context.Canceled):
		return nil
	}
	return err
}

func isTerminal(v any) bool {
	f, ok := v.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// feed sends changes to the program. Changes that arrive while it is busy are merged into
// one message with the newest view. The source limits their rate.
func feed(ctx context.Context, src watch.Source, send func(tea.Msg)) {
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-src.Changed():
			if !open {
				return
			}
		}
		send(changed{src.View(), src.Stats()})
	}
}

// effectsOf returns the real effects. Cancelling ctx ends their waits.
func effectsOf(ctx context.Context, o Options, files *keeper, call func(func(watch.Source))) effects {
	var saves uint64
	return effects{
		read: func(r pages.Read) tea.Cmd {
			return func() tea.Msg {
				ctx, cancel := context.WithTimeout(ctx, readLimit)
				defer cancel()
				return pages.Loaded{ID: r.ID, Want: r.Want, Detail: o.Source.Detail(ctx, r.Node, r.Want, r.Query)}
			}
		},
		save: func(s saved) tea.Cmd {
			saves++
			n := saves
			return func() tea.Msg {
				if err := files.save(n, s); err != nil {
					return notSaved{err}
				}
				return nil
			}
		},
		export:  exportTo(o.Export),
		examine: examiner(ctx, o.Examine),
		connect: func(name string) tea.Cmd {
			return func() tea.Msg { return connected{name, o.Connect(ctx, name)} }
		},
		after: func(d time.Duration, msg tea.Msg) tea.Cmd {
			return tea.Tick(d, func(time.Time) tea.Msg { return msg })
		},
		call: call,
		memory: func() tea.Cmd {
			return func() tea.Msg {
				var stats runtime.MemStats
				runtime.ReadMemStats(&stats)
				return memory{Heap: stats.HeapAlloc, Goroutines: runtime.NumGoroutine()}
			}
		},
	}
}
