package introspectserver

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cnictl/daemon/api/introspect"
)

type source View

func (s source) View() View { return View(s) }

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func get(t *testing.T, v View, path string, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	for k, vs := range header {
		r.Header[k] = vs
	}
	w := httptest.NewRecorder()
	newHandler(Options{Source: source(v), Log: discard()}, "", nil).ServeHTTP(w, r)
	return w
}

func TestHandler_OriginalsDocuments(t *testing.T) {
	t.Parallel()
	v := View{
		ENIConfigName: "default", ENIConfigKnown: true,
		NetworkEnv: introspect.NetworkEnv{NodePortSupport: true, MTU: 9001, Connmark: 128, RandomizeSNAT: 2, VethPrefix: "eni"},
		IPAMEnv:    introspect.IPAMEnv{SubnetDiscovery: true, WarmENITarget: 1, WarmIPTarget: 1},
	}
	tests := map[string]string{
		introspect.PathENIConfigs: string(readRecorded(t, "secondary/v1-eni-configs.before.txt")),
		introspect.PathNetworkEnv: string(readRecorded(t, "secondary/v1-networkutils-env-settings.before.json")),
		introspect.PathIPAMEnv:    string(readRecorded(t, "two-enis/v1-ipamd-env-settings.before.json")),
		"/":                       `{"AvailableCommands":["/v1/enis","/v1/eni-configs","/v1/networkutils-env-settings","/v1/ipamd-env-settings","/v1/summary","/v1/config","/v1/schemas"]}`,
		"/v1/pods":                `{"AvailableCommands":["/v1/enis","/v1/eni-configs","/v1/networkutils-env-settings","/v1/ipamd-env-settings","/v1/summary","/v1/config","/v1/schemas"]}`,
		"//v1/../v1/enis/":        `{"AvailableCommands":["/v1/enis","/v1/eni-configs","/v1/networkutils-env-settings","/v1/ipamd-env-settings","/v1/summary","/v1/config","/v1/schemas"]}`,
	}
	for path, want := range tests {
		w := get(t, v, path, nil)
		if w.Code != http.StatusOK || w.Body.String() != want {
			t.Errorf("%s: %d %s, want %s", path, w.Code, w.Body, want)
		}
		if got := w.Header().Get("Content-Type"); got != "text/plain; charset=utf-8" {
			t.Errorf("%s: content type %q", path, got)
		}
	}
}

func TestHandler_ENIConfigNotKnown(t *testing.T) {
	t.Parallel()
	w := get(t, View{}, introspect.PathENIConfigs, nil)
	if w.Code != http.StatusNotFound || strings.TrimSpace(w.Body.String()) != "Not Found" {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}

func TestHandler_SummaryETagAndGzip(t *testing.T) {
	t.Parallel()
	v := testView()
	v.Summary.LastErrors = []introspect.LastError{{Operation: "CreateNetworkInterface", Message: strings.Repeat("long ", 100)}}
	first := get(t, v, introspect.PathSummary, nil)
	etag := first.Header().Get("ETag")
	if etag == "" || first.Header().Get("Content-Type") != "application/json" || first.Header().Get("Content-Encoding") != "" {
		t.Fatalf("headers %v", first.Header())
	}
	zipped := get(t, v, introspect.PathSummary, http.Header{"Accept-Encoding": {"br, gzip;q=0.5"}})
	if zipped.Header().Get("Content-Encoding") != "gzip" {
		t.Fatalf("headers %v", zipped.Header())
	}
	zr, err := gzip.NewReader(zipped.Body)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(zr); err != nil || !bytes.Equal(body, first.Body.Bytes()) {
		t.Errorf("unzipped %s, %v", body, err)
	}
	same := get(t, v, introspect.PathSummary, http.Header{"If-None-Match": {`"x", ` + etag}})
	if same.Code != http.StatusNotModified || same.Body.Len() != 0 {
		t.Errorf("same state: %d %s", same.Code, same.Body)
	}
	v.Book.ENIs = v.Book.ENIs[:1]
	if other := get(t, v, introspect.PathSummary, http.Header{"If-None-Match": {etag}}); other.Code != http.StatusOK {
		t.Errorf("changed state: %d", other.Code)
	}
	if refused := get(t, v, introspect.PathSummary, http.Header{"Accept-Encoding": {"gzip;q=0"}}); refused.Header().Get("Content-Encoding") != "" {
		t.Error("gzip although refused")
	}
}

func TestHandler_NoSandboxIDs(t *testing.T) {
	t.Parallel()
	for _, path := range []string{introspect.PathENIs, introspect.PathSummary, introspect.PathConfig} {
		if body := get(t, testView(), path, nil).Body.String(); strings.Contains(body, "secret-id") {
			t.Errorf("%s reveals a sandbox id: %s", path, body)
		}
	}
}

func TestHandler_RequestLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	h := newHandler(Options{Source: source{}, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}, "", nil)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/enis", nil)
	r.RemoteAddr = "127.0.0.1:40112"
	h.ServeHTTP(httptest.NewRecorder(), r)
	if want := `level=DEBUG msg="Handling http request: GET, from: 127.0.0.1:40112, URI: /v1/enis"`; !strings.Contains(log.String(), want) {
		t.Errorf("log %q, want %q", log.String(), want)
	}
}

// start serves until the test ends and returns the server's address.
func start(t *testing.T, addr string) string {
	t.Helper()
	s, err := New(Options{Addr: addr, Source: source(testView()), Log: discard()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	select {
	case <-s.Ready():
	case err := <-done:
		done <- nil
		t.Fatalf("serve: %v", err)
	}
	return s.Addr()
}

func TestServe_TCP(t *testing.T) {
	t.Parallel()
	addr := start(t, "127.0.0.1:0")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+introspect.PathENIs, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := introspect.Decode(body); err != nil {
		t.Error(err)
	}
}

func TestServe_UnixReplacesStaleSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "i.sock")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	ln.SetUnlinkOnClose(false)
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	if got := start(t, "unix:"+path); got != "unix:"+path {
		t.Errorf("address %q", got)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	// A running server keeps its socket.
	s, err := New(Options{Addr: "unix:" + path, Source: source{}, Log: discard()})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(t.Context()); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("second server: %v", err)
	}
}

func TestServe_UnixKeepsForeignFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Addr: "unix:" + path, Source: source{}, Log: discard()})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(t.Context()); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("got %v", err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "x" {
		t.Errorf("file %q, %v", b, err)
	}
}

func TestServe_RemovesSocketAtEnd(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "i.sock")
	t.Run("serve", func(t *testing.T) { start(t, "unix:"+path) })
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("socket left: %v", err)
	}
}

func TestNew_Addresses(t *testing.T) {
	t.Parallel()
	for addr, ok := range map[string]bool{
		"127.0.0.1:61679": true, "[::1]:61679": true, ":61679": true, "localhost:http": true, "unix:/run/x.sock": true, "unix:x": true,
		"": false, "unix:": false, "61679": false, "127.0.0.1": false, "127.0.0.1:": false, "unix:/" + strings.Repeat("x", 120): false, "unix:/a\x00b": false,
	} {
		if _, err := New(Options{Addr: addr, Source: source{}, Log: discard()}); (err == nil) != ok {
			t.Errorf("%q: %v", addr, err)
		}
	}
}

func FuzzParseAddr(f *testing.F) {
	for _, s := range []string{"127.0.0.1:61679", "unix:/var/run/aws-node/introspection.sock", "unix:", "[::1]:1", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		network, addr, err := parseAddr(s)
		if (err == nil) != (network == "unix" || network == "tcp") || err != nil && addr != "" {
			t.Fatalf("%q: %q %q %v", s, network, addr, err)
		}
		if err == nil && addr == "" {
			t.Fatalf("%q: empty address", s)
		}
	})
}

func TestServer_ServesOnce(t *testing.T) {
	t.Parallel()
	s, err := New(Options{Addr: "unix:" + filepath.Join(t.TempDir(), "x.sock"), Source: source{}, Log: discard()})
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_ = s.Serve(ended) // it may end regularly or fail to listen
	if err := s.Serve(t.Context()); err == nil || !strings.Contains(err.Error(), "make a new one") {
		t.Errorf("second Serve: %v", err)
	}
}
