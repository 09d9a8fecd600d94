package introspectserver

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/logline"
)

// gzipFrom is the size in bytes from which answers are compressed; smaller ones fit a few
// network packets anyway.
const gzipFrom = 1024

// handler answers requests for upstream's paths and for our documents.
type handler struct {
	opts Options
	ours map[string]document // by path; nil: not served by this daemon
	list []string            // the answer for unknown paths
	host string              // of the bound address, "" for a socket

	polls chan struct{}   // holds one item per waiting request for events
	reads chan struct{}   // holds one item per request that reads the log or the kernel
	stop  <-chan struct{} // closed when the server ends, to answer waiting requests
}

// document makes one of our answers. An error is a *fault.
type document func(http.ResponseWriter, *http.Request) (any, error)

// newHandler returns a handler for the paths that the options enable.
func newHandler(opts Options, host string, stop <-chan struct{}) *handler {
	h := &handler{opts: opts, host: host, polls: make(chan struct{}, maxPolls), reads: make(chan struct{}, maxReads), stop: stop}
	h.ours = map[string]document{
		introspect.PathSummary: h.summary, introspect.PathConfig: h.config,
		introspect.PathPlan: nil, introspect.PathFailures: nil, introspect.PathEvents: nil, introspect.PathPod: nil, introspect.PathLogs: nil,
		introspect.PathSubnetHistory: nil,
		introspect.PathSchemas:       h.schemas,
	}
	if opts.Pool != nil {
		h.ours[introspect.PathPlan] = h.plan
	}
	if opts.Failures != nil {
		h.ours[introspect.PathFailures] = h.failures
	}
	if opts.Events != nil {
		h.ours[introspect.PathEvents] = h.events
	}
	if opts.ObservePod != nil {
		h.ours[introspect.PathPod] = h.pod
	}
	if opts.ReadLog != nil {
		h.ours[introspect.PathLogs] = h.logs
	}
	if opts.SubnetHistory != nil {
		h.ours[introspect.PathSubnetHistory] = h.subnetHistory
	}
	// Upstream's paths come first, in a fixed order (upstream's order varies from process
	// to process).
	h.list = slices.Clone(introspect.UpstreamPaths)
	for _, path := range []string{
		introspect.PathSummary, introspect.PathConfig, introspect.PathPlan, introspect.PathFailures, introspect.PathEvents,
		introspect.PathPod, introspect.PathLogs, introspect.PathSubnetHistory, introspect.PathSchemas,
	} {
		if h.ours[path] != nil {
			h.list = append(h.list, path)
		}
	}
	return h
}

// ServeHTTP never redirects. As in upstream, its paths and unknown ones accept any method.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.opts.Log.Enabled(r.Context(), slog.LevelDebug) {
		h.logRequest(r.Context(), r)
	}
	if foreignHost(r, h.host) {
		h.refused(w, r, refuse(http.StatusForbidden, introspect.FaultForeignHost,
			"Host %.60q is not this node's loopback: use localhost or the IP address", r.Host))
		return
	}
	switch r.URL.Path {
	case introspect.PathENIs:
		h.plain(w, r, ENIs(h.view(w).Book))
	case introspect.PathENIConfigs:
		v := h.view(w)
		if !v.ENIConfigKnown {
			http.Error(w, notFoundBody, http.StatusNotFound)
			return
		}
		h.plain(w, r, v.ENIConfigName)
	case introspect.PathNetworkEnv:
		h.plain(w, r, h.view(w).NetworkEnv)
	case introspect.PathIPAMEnv:
		h.plain(w, r, h.view(w).IPAMEnv)
	default:
		h.serveOurs(w, r)
	}
}

// view reads the state and sets its time as the answer's Date, from which readers compute
// cooldowns.
func (h *handler) view(w http.ResponseWriter) View {
	v := h.opts.Source.View()
	setDate(w, v.Now)
	return v
}

func setDate(w http.ResponseWriter, at time.Time) {
	if !at.IsZero() {
		w.Header().Set("Date", at.UTC().Format(http.TimeFormat))
	}
}

// serveOurs serves one of our documents, or the list of paths for an unknown path.
func (h *handler) serveOurs(w http.ResponseWriter, r *http.Request) {
	doc, known := h.ours[r.URL.Path]
	if kind, ok := strings.CutPrefix(r.URL.Path, introspect.PathSchemas+"/"); ok {
		doc, known = schema(kind), true
	}
	if !known {
		h.plain(w, r, introspect.Commands{AvailableCommands: h.list})
		return
	}
	body, err := h.answer(doc, w, r)
	if err != nil {
		h.refused(w, r, err)
		return
	}
	h.send(w, r, body)
}

func (h *handler) answer(doc document, w http.ResponseWriter, r *http.Request) (any, error) {
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		return nil, refuse(http.StatusMethodNotAllowed, introspect.FaultMethod, "method %.20q: only GET and HEAD are supported", r.Method)
	case doc == nil:
		return nil, refuse(http.StatusNotFound, introspect.FaultNotServed, "this daemon does not serve %s", r.URL.Path)
	}
	return doc(w, r)
}

// foreignHost reports whether a request received on loopback names another host. Otherwise a
// web page in a browser on the node could read these documents, with a domain that resolves
// to 127.0.0.1 (DNS rebinding). Names without a dot are safe, as they do not exist on the
// Internet.
func foreignHost(r *http.Request, bound string) bool {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	tcp, ok := local.(*net.TCPAddr)
	if !ok || !tcp.IP.IsLoopback() {
		return false
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if _, err := netip.ParseAddr(host); err == nil || host == strings.ToLower(bound) {
		return false
	}
	name := strings.TrimSuffix(host, ".")
	return strings.Contains(name, ".") && !strings.HasSuffix(name, ".localhost")
}

// refused answers with a fault document.
func (h *handler) refused(w http.ResponseWriter, r *http.Request, err error) {
	var f *fault
	if !errors.As(err, &f) {
		h.opts.Log.ErrorContext(r.Context(), "answer introspection request", logline.KeyPath, r.URL.Path, logline.KeyError, err)
		f = refuse(http.StatusInternalServerError, introspect.FaultInternal, "internal error; see the daemon's log")
	}
	body, ok := h.encode(w, r, f.doc)
	if !ok {
		return
	}
	if f.retry != "" {
		w.Header().Set("Retry-After", f.retry)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.status)
	h.write(w, r, body)
}

// logRequest logs upstream's phrase, but at debug instead of info: a poll every 2 s would be
// 43,200 lines a day. The URI comes from the peer, so it is quoted if it contains anything
// unprintable, and truncated if it is long.
func (h *handler) logRequest(ctx context.Context, r *http.Request) {
	uri := r.RequestURI
	if len(uri) > 256 {
		uri = uri[:256] + "…"
	}
	if quoted := strconv.QuoteToGraphic(uri); quoted[1:len(quoted)-1] != uri {
		uri = quoted
	}
	h.opts.Log.DebugContext(ctx, fmt.Sprintf(requestLogFormat, r.Method, r.RemoteAddr, uri)) //nolint:sloglint // upstream's line, which people search for
}

// plain sends one of upstream's documents: with upstream's content type, no trailing
// newline and no encoding.
func (h *handler) plain(w http.ResponseWriter, r *http.Request, doc any) {
	body, ok := h.encode(w, r, doc)
	if !ok {
		return
	}
	w.Header().Set("Content-Type", textPlain)
	h.write(w, r, body)
}

// send sends one of our documents: JSON, compressed on request, with an entity tag.
func (h *handler) send(w http.ResponseWriter, r *http.Request, doc any) {
	body, ok := h.encode(w, r, doc)
	if !ok {
		return
	}
	if len(body) > introspect.MaxBody {
		h.refused(w, r, refuse(http.StatusInternalServerError, introspect.FaultAnswerTooLong, "the response is too large: %d bytes, limit %d", len(body), introspect.MaxBody))
		return
	}
	sum := fnv.New64a()
	sum.Write(body)
	etag := fmt.Sprintf(`W/"%016x"`, sum.Sum64())
	head := w.Header()
	head.Set("ETag", etag)
	head.Set("Cache-Control", "no-cache")
	head.Set("Vary", "Accept-Encoding")
	if etagMatches(r.Header.Get("If-None-Match"), etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	head.Set("Content-Type", "application/json")
	if len(body) < gzipFrom || !acceptsGzip(r.Header.Get("Accept-Encoding")) {
		h.write(w, r, body)
		return
	}
	head.Set("Content-Encoding", "gzip")
	zw := gzip.NewWriter(w)
	_, err := zw.Write(body)
	if err == nil {
		err = zw.Close()
	}
	h.logWrite(r, err)
}

func (h *handler) encode(w http.ResponseWriter, r *http.Request, doc any) ([]byte, bool) {
	body, err := json.Marshal(doc)
	if err != nil {
		h.opts.Log.ErrorContext(r.Context(), "encode introspection response", "error", err)
		http.Error(w, "Internal Server Error", http.StatusInternalServerError)
		return nil, false
	}
	return body, true
}

func (h *handler) write(w http.ResponseWriter, r *http.Request, body []byte) {
	_, err := w.Write(body)
	h.logWrite(r, err)
}

func (h *handler) logWrite(r *http.Request, err error) {
	if err != nil {
		h.opts.Log.DebugContext(r.Context(), "write introspection response", "error", err)
	}
}

// etagMatches compares weakly (RFC 9110 §13.1.2).
func etagMatches(header, etag string) bool {
	for item := range strings.SplitSeq(header, ",") {
		item = strings.TrimSpace(item)
		if item == "*" || strings.TrimPrefix(item, "W/") == strings.TrimPrefix(etag, "W/") {
			return true
		}
	}
	return false
}

// acceptsGzip reports whether gzip is listed and not refused with q=0.
func acceptsGzip(header string) bool {
	for item := range strings.SplitSeq(header, ",") {
		coding, params, _ := strings.Cut(item, ";")
		if strings.TrimSpace(coding) != "gzip" {
			continue
		}
		q, isQ := strings.CutPrefix(strings.ReplaceAll(params, " ", ""), "q=")
		weight, err := strconv.ParseFloat(q, 64)
		return !isQ || err == nil && weight > 0
	}
	return false
}
