package app

import (
	"fmt"
	"runtime/debug"

	tea "charm.land/bubbletea/v2"
)

// broke carries the panic of a command.
type broke struct {
	with  any
	stack []byte
}

// String returns the text of the program's panic, printed after the screens are gone.
func (b broke) String() string { return fmt.Sprintf("%v, in\n%s", b.with, b.stack) }

// guarded turns a command's panic into a message for the program's loop. Bubble Tea
// recovers panics too, but reports them outside the loop, and by then the loop and the
// process may have ended.
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
