package introspectserver

import (
	"fmt"
	"net/http"

	"cnictl/daemon/api/introspect"
)

// fault is a refusal with its HTTP status.
type fault struct {
	status int
	doc    introspect.Fault
	retry  string // Retry-After in seconds, "" = none
}

func (f *fault) Error() string { return f.doc.Message }

func refuse(status int, code, format string, args ...any) *fault {
	return &fault{status: status, doc: introspect.Fault{
		APIVersion: introspect.APIVersion, Kind: introspect.KindFault, Code: code, Message: sentence(fmt.Sprintf(format, args...)),
	}}
}

func badParameter(format string, args ...any) *fault {
	return refuse(http.StatusBadRequest, introspect.FaultBadParameter, format, args...)
}

func notFound(format string, args ...any) *fault {
	return refuse(http.StatusNotFound, introspect.FaultNotFound, format, args...)
}

func unavailable(what string, err error) *fault {
	return refuse(http.StatusServiceUnavailable, introspect.FaultUnavailable, "%s: %v; the daemon's log may say more", what, err)
}

// busy asks the client to retry after a number of seconds.
func busy(after, format string, args ...any) *fault {
	f := refuse(http.StatusServiceUnavailable, introspect.FaultBusy, format, args...)
	f.retry = after
	return f
}
