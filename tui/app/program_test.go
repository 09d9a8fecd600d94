package app

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/exp/teatest/v2"

	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
)

// TestProgram runs the real program: messages through its loop, frames through its renderer, the
// fleet through the feed.
func TestProgram(t *testing.T) {
	t.Parallel()
	b := newBench(t, pagetest.NewSource(60, 3), nil)
	tm := teatest.NewTestModel(t, b.Model, teatest.WithInitialTermSize(100, 30))
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { feed(ctx, b.fleet, tm.Send) })
	defer group.Wait()
	defer cancel()
	sees := func(text string) {
		t.Helper()
		teatest.WaitFor(t, tm.Output(), func(out []byte) bool { return bytes.Contains(out, []byte(text)) }, teatest.WithDuration(time.Minute))
	}
	sees("ip-10-0-0-4")
	tm.Send(press("/"))
	tm.Type("state=stale*")
	tm.Send(press("enter"))
	b.fleet.Step(60)
	tm.Send(press("?"))
	sees("Find and sort")
	tm.Send(press("esc"))
	tm.Send(pages.Open{Screen: "subnets"})
	sees("subnet-0aa11bb22cc33dd44")
	tm.Send(tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl})
	last, ok := tm.FinalModel(t, teatest.WithFinalTimeout(time.Minute)).(*Model)
	if !ok || listOf(last.router.stack[0].page).Filter() != "state=stale*" {
		t.Errorf("the filter is not that of the screen below: %+v", last.router.opens())
	}
}

// TestFeedCoalesces: the feed sends the newest view once, however often the fleet changes.
func TestFeedCoalesces(t *testing.T) {
	t.Parallel()
	fleet := pagetest.NewSource(40, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got := make(chan changed) // unbuffered: a notification waits until it is received
	done := make(chan struct{})
	go func() {
		defer close(done)
		feed(ctx, fleet, func(m tea.Msg) {
			select {
			case got <- m.(changed):
			case <-ctx.Done():
			}
		})
	}()
	first := <-got
	for range 50 {
		fleet.Step(7)
	}
	// The second view was taken somewhere among the changes, the third after them.
	last, newest := <-got, fleet.View().Generation
	if first.view.Generation >= last.view.Generation {
		t.Errorf("generation %d was sent after %d", last.view.Generation, first.view.Generation)
	}
	if last.view.Generation != newest {
		last = <-got
	}
	if last.view.Generation != newest {
		t.Errorf("generation %d of %d is the third that was sent", last.view.Generation, newest)
	}
	cancel()
	<-done
}
