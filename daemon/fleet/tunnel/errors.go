package tunnel

import "cnictl/daemon/api/introspect"

// Error is a failure of a tunnel, a stream or a request to the API server.
type Error struct {
	Reason introspect.Reason
	Err    error // what happened, for people

	// With ReasonForbidden: the rule that is missing.
	Verb      string // get, create
	Resource  string // pods/portforward
	Namespace string // "" = of the cluster
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// NodeReason is Reason, for those who know the method alone.
func (e *Error) NodeReason() introspect.Reason { return e.Reason }
