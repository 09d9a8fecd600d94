package client

import (
	"errors"
	"testing"

	"cnictl/daemon/api/introspect"
)

// TestError_Hint: a stranger's 404 is told apart from a daemon that does not have what
// was asked for.
func TestError_Hint(t *testing.T) {
	t.Parallel()
	stranger := &Error{Reason: introspect.ReasonNotFound, Err: errors.New("answered HTTP status 404")}
	if got := stranger.Hint(); got != Hint(introspect.ReasonNotFound) || got == "" {
		t.Errorf("a stranger: %q", got)
	}
	ours := &Error{Reason: introspect.ReasonNotFound, Err: &introspect.Fault{Message: "the daemon has given pod a/b no address"}}
	if got := ours.Hint(); got != "" {
		t.Errorf("ours: %q", got)
	}
}
