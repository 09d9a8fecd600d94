package introspectserver

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"cnictl/daemon/api/introspect"
)

const (
	// maxPolls bounds the concurrently waiting requests for events: each holds a
	// connection and a goroutine.
	maxPolls = 32
	// maxReads bounds the concurrent requests that read the log: each may search a
	// few megabytes.
	maxReads = 2
	// pollSlack is how long a waiting request may take besides its wait.
	pollSlack = 5 * time.Second
)

func (h *handler) summary(w http.ResponseWriter, _ *http.Request) (any, error) {
	return Summary(h.view(w)), nil
}

func (h *handler) config(w http.ResponseWriter, _ *http.Request) (any, error) {
	return config(h.view(w)), nil
}

func (h *handler) schemas(http.ResponseWriter, *http.Request) (any, error) {
	return introspect.Schemas(), nil
}

// schema returns the document of one schema.
func schema(kind string) document {
	return func(http.ResponseWriter, *http.Request) (any, error) {
		if s, ok := introspect.Schema(kind); ok {
			return s, nil
		}
		return nil, notFound("no schema for kind %.60q; %s lists them", kind, introspect.PathSchemas)
	}
}

func (h *handler) plan(w http.ResponseWriter, r *http.Request) (any, error) {
	q, err := parsePlanQuery(r)
	if err != nil {
		return nil, err
	}
	pool, err := h.opts.Pool(r.Context())
	if err != nil {
		return nil, unavailable("read the pool", err)
	}
	setDate(w, pool.Now)
	return Plan(pool, q), nil
}

func (h *handler) failures(_ http.ResponseWriter, r *http.Request) (any, error) {
	if err := parseQuery(r).done(); err != nil {
		return nil, err
	}
	return introspect.NodeFailures{
		APIVersion: introspect.APIVersion, Kind: introspect.KindFailures, Items: h.opts.Failures.list(),
	}, nil
}

func (h *handler) subnetHistory(_ http.ResponseWriter, r *http.Request) (any, error) {
	if err := parseQuery(r).done(); err != nil {
		return nil, err
	}
	return h.opts.SubnetHistory(), nil
}

// events returns the events after q.since, or waits for one.
func (h *handler) events(w http.ResponseWriter, r *http.Request) (any, error) {
	q, err := parseEventQuery(r)
	if err != nil {
		return nil, err
	}
	doc, grown, err := h.opts.Events.read(q, time.Now())
	if err != nil || len(doc.Items) > 0 || q.wait == 0 {
		return doc, err
	}
	select {
	case h.polls <- struct{}{}:
		defer func() { <-h.polls }()
	default:
		return nil, busy("5", "%d requests are already waiting for events: retry without wait, or later", maxPolls)
	}
	// The server's deadlines are for immediate answers. A recorder in a test has none.
	deadline := time.Now().Add(q.wait + pollSlack)
	c := http.NewResponseController(w)
	if err := errors.Join(c.SetReadDeadline(deadline), c.SetWriteDeadline(deadline)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, err
	}
	end := time.NewTimer(q.wait)
	defer end.Stop()
	for len(doc.Items) == 0 && err == nil {
		select {
		case <-grown:
		case <-end.C:
			return doc, nil
		case <-h.stop:
			return doc, nil
		case <-r.Context().Done():
			return doc, nil // nobody reads it
		}
		doc, grown, err = h.opts.Events.read(q, time.Now())
	}
	return doc, err
}

func (h *handler) pod(w http.ResponseWriter, r *http.Request) (any, error) {
	pod, err := parsePodQuery(r)
	if err != nil {
		return nil, err
	}
	v := h.view(w)
	doc := introspect.NodePod{APIVersion: introspect.APIVersion, Kind: introspect.KindPod, Pod: pod, Interfaces: podInterfaces(v, pod)}
	if len(doc.Interfaces) == 0 {
		return nil, notFound("no address of this node is assigned to pod %s/%s; pods in the host's network and with branch ENIs have none", pod.Namespace, pod.Name)
	}
	done, err := h.read()
	if err != nil {
		return nil, err
	}
	defer done()
	for n := range doc.Interfaces {
		i := &doc.Interfaces[n]
		seen, err := h.opts.ObservePod(r.Context(), i.Address, i.HostLink)
		if err != nil {
			i.Problem = sentence(err.Error())
			continue
		}
		i.Observed, i.Differences = &seen, podDifferences(*i, seen)
	}
	return doc, nil
}

// read takes a slot for a request that reads the log or the kernel, until done is called.
func (h *handler) read() (done func(), err error) {
	select {
	case h.reads <- struct{}{}:
		return func() { <-h.reads }, nil
	default:
		return nil, busy("1", "%d requests are already reading the log or the kernel's state: retry later", maxReads)
	}
}

func (h *handler) logs(_ http.ResponseWriter, r *http.Request) (any, error) {
	q, err := parseLogQuery(r)
	if err != nil {
		return nil, err
	}
	done, err := h.read()
	if err != nil {
		return nil, err
	}
	defer done()
	doc, err := h.opts.ReadLog(r.Context(), q)
	switch {
	case errors.Is(err, introspect.ErrNoLogFile):
		return nil, refuse(http.StatusNotFound, introspect.FaultNotFound, "%s", strings.TrimSpace(err.Error()))
	case err != nil:
		return nil, unavailable("read the log", err)
	}
	doc.APIVersion, doc.Kind = introspect.APIVersion, introspect.KindLogs
	return doc, nil
}
