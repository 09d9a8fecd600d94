package cluster

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"cnictl/daemon/fleet/tunnel"
)

// LogOptions narrow the log of a container.
type LogOptions struct {
	Container string        // "" = DefaultContainer
	Follow    bool          // until ctx ends
	Previous  bool          // of the run before
	Since     time.Duration // 0 = all
	Tail      int           // lines; 0 = all
}

// DaemonLogs reads what a container of a daemon's pod wrote, line by line with times. The
// caller closes it, and bounds what it reads.
func (c *Cluster) DaemonLogs(ctx context.Context, pod tunnel.Pod, o LogOptions) (io.ReadCloser, error) {
	q := query{"container": orElse(o.Container, DefaultContainer), "timestamps": "true"}
	if o.Follow {
		q["follow"] = "true"
	}
	if o.Previous {
		q["previous"] = "true"
	}
	if o.Since > 0 {
		q["sinceSeconds"] = strconv.Itoa(max(int(o.Since.Seconds()), 1))
	}
	if o.Tail > 0 {
		q["tailLines"] = strconv.Itoa(o.Tail)
	}
	r := tunnel.Request{Verb: "get", Resource: "pods/log", Namespace: pod.Namespace, Name: pod.Name}
	return c.api.open(ctx, http.MethodGet, r, kindPods.path(pod.Namespace, pod.Name, "log"), q, nil)
}
