package client

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/testenv"
)

var clock = time.Date(2026, 11, 21, 3, 0, 20, 0, time.UTC)

func newClient(t *testing.T, address string) *Client {
	t.Helper()
	c, err := New(Options{Address: address, UserAgent: "cnictl/test", Now: func() time.Time { return clock }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func serve(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return newClient(t, s.URL)
}

func body(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s) }
}

func TestClient_ReadsRecorded(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../testdata/recorded/prefix/v1-enis.one-deleted.json")
	if err != nil {
		t.Fatal(err)
	}
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", clock.Format(http.TimeFormat))
		if r.URL.Path != introspect.PathENIs || r.Header.Get("User-Agent") != "cnictl/test" {
			w.WriteHeader(http.StatusTeapot)
		}
		_, _ = w.Write(doc)
	})
	pool, at, err := c.ENIs(t.Context(), DefaultCooldown)
	if err != nil {
		t.Fatal(err)
	}
	if got := pool.Cards[0]; !at.Equal(clock) || got.Assigned != 2 || *got.Cooling != 1 || got.Free != 13 {
		t.Errorf("at %s: %+v", at, got)
	}
}

func TestClient_Refusals(t *testing.T) {
	t.Parallel()
	big := strings.Repeat(" ", introspect.MaxBody) + "{}"
	tests := map[string]struct {
		h    http.HandlerFunc
		want introspect.Reason
	}{
		"original without summary": {body(`{"AvailableCommands":["/v1/enis"]}`), introspect.ReasonNoEndpoint},
		"other JSON":               {body(`{"kind":"Pod"}`), introspect.ReasonMalformed},
		"wrong types":              {body(`{"kind":"NodeSummary","cards":"many"}`), introspect.ReasonMalformed},
		"html":                     {body("<html></html>"), introspect.ReasonNotJSON},
		"empty":                    {body(""), introspect.ReasonNotJSON},
		"too large":                {body(big), introspect.ReasonTooLarge},
		"404":                      {http.NotFound, introspect.ReasonNotFound},
		"500":                      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, introspect.ReasonStatus},
		"304 without asking":       {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) }, introspect.ReasonStatus},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
		}, introspect.ReasonStatus},
		"cut short": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"kind"`)
		}, introspect.ReasonTransport},
		"gzip bomb": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			zw := gzip.NewWriter(w)
			for range 2 {
				if _, err := io.WriteString(zw, big); err != nil {
					return
				}
			}
			_ = zw.Close()
		}, introspect.ReasonTooLarge},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := serve(t, tt.h).Summary(t.Context())
			if got := ReasonOf(err); got != tt.want {
				t.Errorf("reason %q (%v), want %q", got, err, tt.want)
			}
		})
	}
}

func TestClient_NoConnection(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := ln.Addr().String()
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]introspect.Reason{
		closed: introspect.ReasonRefused,
		"unix:" + filepath.Join(t.TempDir(), "none.sock"): introspect.ReasonNoSocket,
	} {
		_, _, err := newClient(t, address).Summary(t.Context())
		var e *Error
		if !errors.As(err, &e) || e.Reason != want || e.Hint() == "" {
			t.Errorf("%s: %v, want %s", address, err, want)
		}
	}
}

func TestClient_TimeoutAndCancel(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"endless":"`)
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
		case <-release:
		}
	})
	t.Cleanup(func() { close(release) })
	short, cancel := context.WithDeadline(t.Context(), testenv.Soon())
	defer cancel()
	if _, _, err := c.Summary(short); ReasonOf(err) != introspect.ReasonTimeout {
		t.Errorf("deadline: %v", err)
	}
	gone, cancelGone := context.WithCancel(t.Context())
	cancelGone()
	if _, _, err := c.Summary(gone); ReasonOf(err) != introspect.ReasonCancelled {
		t.Errorf("cancel: %v", err)
	}
}

// TestClient_AsksConditionally: an unchanged answer is neither sent nor decoded again, a
// changed one is.
func TestClient_AsksConditionally(t *testing.T) {
	t.Parallel()
	var full, unchanged atomic.Int32
	var etag atomic.Value
	etag.Store(`W/"1"`)
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		tag := etag.Load().(string)
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			unchanged.Add(1)
			w.WriteHeader(http.StatusNotModified)
			return
		}
		full.Add(1)
		_, _ = io.WriteString(w, `{"kind":"NodeSummary","node":"n1","cards":[{"total":1,"free":1}]}`)
	})
	var cards []*introspect.CardSummary
	for _, tag := range []string{`W/"1"`, `W/"1"`, `W/"1"`, `W/"2"`} {
		etag.Store(tag)
		s, _, err := c.Summary(t.Context())
		if err != nil || s.Node != "n1" {
			t.Fatalf("%+v, %v", s, err)
		}
		cards = append(cards, &s.Cards[0])
	}
	if full.Load() != 2 || unchanged.Load() != 2 {
		t.Errorf("%d full answers, %d unchanged", full.Load(), unchanged.Load())
	}
	if cards[1] != cards[0] || cards[2] != cards[0] || cards[3] == cards[0] {
		t.Errorf("decoded anew or not: %p", cards)
	}
}

func TestClient_UnixSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "i.sock")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: ln, Config: &http.Server{Handler: body(`{"kind":"NodeConfig","items":[]}`)}}
	s.Start()
	t.Cleanup(s.Close)
	if _, err := newClient(t, "unix:"+path).Config(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestParseAddress(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"unix:/run/x.sock":     "unix /run/x.sock http://node",
		"127.0.0.1:61679":      "tcp 127.0.0.1:61679 http://127.0.0.1:61679",
		"[fe80::1%eth0]:61679": "tcp [fe80::1%eth0]:61679 http://[fe80::1%25eth0]:61679",
		"node-1:61679":         "tcp node-1:61679 http://node-1:61679",
		"http://node-1:61679":  "tcp node-1:61679 http://node-1:61679",
		"http://node-1/":       "tcp node-1:80 http://node-1:80",
		"http://[::1]":         "tcp [::1]:80 http://[::1]:80",
		"":                     "", "unix:": "", "unix:x.sock": "", "node-1": "", ":61679": "", "node-1:0": "", "node-1:99999": "",
		"https://node-1:443": "", "http://u:p@node-1:1": "", "http://node-1:1/v1/enis": "", "http://node-1:1?x": "", "a/b:1": "", "a b:1": "",
	}
	for in, want := range tests {
		got := ""
		if ep, err := parseAddress(in); err == nil {
			got = fmt.Sprint(ep.network, " ", ep.address, " ", ep.base)
		}
		if got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzParseAddress(f *testing.F) {
	for _, s := range []string{"unix:/run/x.sock", "127.0.0.1:61679", "[::1]:61679", "http://node-1:61679", "http://[fe80::1%25eth0]:1", "https://x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ep, err := parseAddress(s)
		if (err == nil) != (ep != endpoint{}) {
			t.Fatalf("%q: %+v, %v", s, ep, err)
		}
		if err != nil {
			return
		}
		if _, err := http.NewRequest(http.MethodGet, ep.base+introspect.PathENIs, bytes.NewReader(nil)); err != nil {
			t.Fatalf("%q gives a base that is no URL: %v", s, err)
		}
	})
}

// TestClient_CloseForgets: Close forgets long answers; only short ones are still requested
// conditionally.
func TestClient_CloseForgets(t *testing.T) {
	t.Parallel()
	var asked []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path+r.Header.Get("If-None-Match"))
		w.Header().Set("ETag", `W/"1"`)
		if r.URL.Path == "/long" {
			body(`"`+strings.Repeat("x", idleKept)+`"`)(w, r)
			return
		}
		body(`"short"`)(w, r)
	})
	for range 2 {
		for _, path := range []string{"/long", "/short"} {
			if _, err := c.Get(t.Context(), path); err != nil {
				t.Fatal(err)
			}
		}
		c.Close()
	}
	if got, want := strings.Join(asked, " "), `/long /short /long /shortW/"1"`; got != want {
		t.Errorf("asked %q, want %q", got, want)
	}
}
