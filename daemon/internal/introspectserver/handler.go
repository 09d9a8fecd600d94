package introspectserver

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"cnictl/daemon/api/introspect"
)

// commands answers unknown paths: the original's paths first, in one order (the
// original's order changes from process to process).
func commands() introspect.Commands {
	return introspect.Commands{AvailableCommands: []string{
		introspect.PathENIs, introspect.PathENIConfigs, introspect.PathNetworkEnv, introspect.PathIPAMEnv,
		introspect.PathSummary, introspect.PathConfig,
	}}
}

// gzipFrom is the size in bytes from which an answer is compressed: below it fits
// a few network packets anyway.
const gzipFrom = 1024

type handler struct {
	source Source
	log    *slog.Logger
}

// ServeHTTP answers any method alike, as the original does, and never redirects.
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.log.Enabled(r.Context(), slog.LevelDebug) {
		h.logRequest(r.Context(), r)
	}
	v := h.source.View()
	if !v.Now.IsZero() {
		// The moment of the state: readers count cooldowns from it.
		w.Header().Set("Date", v.Now.UTC().Format(http.TimeFormat))
	}
	switch r.URL.Path {
	case introspect.PathENIs:
		h.plain(w, r, ENIs(v.Book))
	case introspect.PathENIConfigs:
		if !v.ENIConfigKnown {
			http.Error(w, notFoundBody, http.StatusNotFound)
			return
		}
		h.plain(w, r, v.ENIConfigName)
	case introspect.PathNetworkEnv:
		h.plain(w, r, v.NetworkEnv)
	case introspect.PathIPAMEnv:
		h.plain(w, r, v.IPAMEnv)
	case introspect.PathSummary:
		h.ours(w, r, Summary(v))
	case introspect.PathConfig:
		h.ours(w, r, config(v))
	default:
		h.plain(w, r, commands())
	}
}

// logRequest keeps the original's phrase, at debug where the original uses info:
// a poll every 2 s would be 43,200 lines a day. The URI is the peer's, so it is
// quoted when it holds anything unprintable and cut when it is long.
func (h handler) logRequest(ctx context.Context, r *http.Request) {
	uri := r.RequestURI
	if len(uri) > 256 {
		uri = uri[:256] + "…"
	}
	if quoted := strconv.QuoteToGraphic(uri); quoted[1:len(quoted)-1] != uri {
		uri = quoted
	}
	h.log.DebugContext(ctx, fmt.Sprintf(requestLogFormat, r.Method, r.RemoteAddr, uri)) //nolint:sloglint // the original's line, which people search for
}

// plain answers a document of the original: its content type, no trailing newline,
// no encodings.
func (h handler) plain(w http.ResponseWriter, r *http.Request, doc any) {
	body, ok := h.encode(w, r, doc)
	if !ok {
		return
	}
	w.Header().Set("Content-Type", textPlain)
	h.write(w, r, body)
}

// ours answers a document of ours: JSON, compressed on request, with an entity tag.
func (h handler) ours(w http.ResponseWriter, r *http.Request, doc any) {
	body, ok := h.encode(w, r, doc)
	if !ok {
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

func (h handler) encode(w http.ResponseWriter, r *http.Request, doc any) ([]byte, bool) {
	body, err := json.Marshal(doc)
	if err != nil {
		h.log.ErrorContext(r.Context(), "encode introspection answer", "error", err)
		http.Error(w, "Internal Server Error", http.StatusInternalServerError)
		return nil, false
	}
	return body, true
}

func (h handler) write(w http.ResponseWriter, r *http.Request, body []byte) {
	_, err := w.Write(body)
	h.logWrite(r, err)
}

func (h handler) logWrite(r *http.Request, err error) {
	if err != nil {
		h.log.DebugContext(r.Context(), "write introspection answer", "error", err)
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

// acceptsGzip reports whether gzip is named and not refused by q=0.
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
