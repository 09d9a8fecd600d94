package ipamd

import (
	"context"
	"log/slog"
	"regexp"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/internal/vpcapi"
	"cnictl/daemon/notice"
)

// uidForm is the form of the UIDs that an API server assigns.
var uidForm = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// objectUID returns the UID of a pod's API object for the UID that the runtime knows, or "" if
// that is impossible: for static pods the kubelet creates UIDs of another form, which their
// mirrors in the API server do not have. It distinguishes a pod from an earlier one of the
// same name.
func objectUID(uid string) string {
	if uidForm.MatchString(uid) {
		return uid
	}
	return ""
}

// refusals reports each EC2 call that the node's IAM role may not make, beginning with the
// first one at the start: with upstream's log line, and its event on the daemon's pod and on
// the Node.
type refusals struct {
	log *slog.Logger
	api *kubernetes // nil if none is configured
}

func (r refusals) observe(call vpcapi.Call) {
	action := vpcapi.MissingAction(call.Err)
	if action == "" {
		return
	}
	//nolint:sloglint // upstream's line
	r.log.Error(notice.MissingIAM(notice.Ref{}, action).Note, slog.String(logline.KeyCause, string(cause.EC2Unauthorized)), slog.Any(logline.KeyError, vpcapi.Brief(call.Err)))
	if r.api == nil {
		return
	}
	for _, about := range []notice.Ref{r.api.OwnPod(), r.api.OwnNode()} {
		if about.Name != "" {
			r.api.EmitLater(notice.MissingIAM(about, action))
		}
	}
}

// flushLimit bounds how long a failed start waits for its events to be sent.
const flushLimit = 3 * time.Second

// flush sends the events of a failed start before the process ends.
func (a *kubernetes) flush(ctx context.Context) {
	if a == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, flushLimit)
	defer cancel()
	if sent, err := a.FlushEvents(ctx); err != nil {
		a.log.Warn("events of the failed start not sent", slog.Int(logline.KeyCount, sent), slog.Any(logline.KeyError, err))
	}
}
