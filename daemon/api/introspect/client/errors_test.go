package client

import (
	"errors"
	"testing"

	"cnictl/daemon/api/introspect"
)

// TestError_Hint: another program's 404 differs from that of a daemon that does not have what
// was asked for.
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
