package client

import (
	"errors"
	"testing"

	"cnictl/daemon/api/introspect"
)

// TestError_Hint: a 404 from another program gets a hint; a daemon's 404 for a missing
// object does not.
func TestError_Hint(t *testing.T) {
	t.Parallel()
	other := &Error{Reason: introspect.ReasonNotFound, Err: errors.New("answered HTTP status 404")}
	if got := other.Hint(); got != Hint(introspect.ReasonNotFound) || got == "" {
		t.Errorf("another program: %q", got)
	}
	ours := &Error{Reason: introspect.ReasonNotFound, Err: &introspect.Fault{Message: "the daemon has given pod a/b no address"}}
	if got := ours.Hint(); got != "" {
		t.Errorf("ours: %q", got)
	}
}
