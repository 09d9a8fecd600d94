package app

import (
	"fmt"
	"runtime/debug"

	tea "charm.land/bubbletea/v2"
)

// broke is a panic of a command.
type broke struct {
	with  any
	stack []byte
}

// String is the text of the program's panic, printed after the screens are gone.
func (b broke) String() string { return fmt.Sprintf("%v, in\n%s", b.with, b.stack) }

// guarded takes a panic of a command into the program's loop. Bubble Tea recovers those
// too, but reports them outside the loop, when loop and process may already have ended.
func guarded(cmd tea.Cmd) tea.Cmd {
	if cmd == nil {
		return nil
	}
	return func() (msg tea.Msg) {
		defer func() {
			if with := recover(); with != nil {
				msg = broke{with, debug.Stack()}
			}
		}()
		msg = cmd()
		if batch, ok := msg.(tea.BatchMsg); ok {
			for i := range batch {
				batch[i] = guarded(batch[i])
			}
		}
		return msg
	}
}
