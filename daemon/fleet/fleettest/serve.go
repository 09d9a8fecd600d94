package fleettest

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/internal/introspectserver"
)

// View is the state of one of our nodes.
type View = introspectserver.View

type source func() View

func (s source) View() View { return s() }

// Serve runs the introspection server of one of our nodes on a socket in dir until the test ends,
// and returns its address.
func Serve(tb testing.TB, dir, name string, v View) string {
	tb.Helper()
	return ServeFunc(tb, dir, name, func() View { return v })
}

// ServeFunc is Serve for a node whose state changes: view is called for each request, from any
// goroutine.
func ServeFunc(tb testing.TB, dir, name string, view func() View) string {
	tb.Helper()
	s, err := introspectserver.New(introspectserver.Options{
		Addr: "unix:" + filepath.Join(dir, name+".sock"), Source: source(view), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			tb.Errorf("serve node %s: %v", name, err)
		}
	})
	select {
	case <-s.Ready():
	case err := <-done:
		done <- nil
		tb.Fatalf("serve node %s: %v", name, err)
	case <-time.After(10 * time.Second):
		tb.Fatalf("node %s does not listen after 10 s", name)
	}
	return s.Addr()
}

// ServeRecorded answers as upstream did at one moment of a recording: its four documents, the list
// of them under every other path, and now as the node's clock.
func ServeRecorded(tb testing.TB, dir, name, recording, moment string, now time.Time) string {
	tb.Helper()
	read := func(file string) []byte {
		b, err := os.ReadFile(filepath.Join(recording, file))
		if err != nil {
			tb.Fatal(err)
		}
		return b
	}
	docs := map[string][]byte{
		introspect.PathENIs:       read("v1-enis." + moment + ".json"),
		introspect.PathENIConfigs: read("v1-eni-configs.before.txt"),
		introspect.PathNetworkEnv: read("v1-networkutils-env-settings.before.json"),
		introspect.PathIPAMEnv:    read("v1-ipamd-env-settings.before.json"),
	}
	commands := read("unknown-path.before.json")
	return ServeHandler(tb, dir, name, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
		doc, ok := docs[r.URL.Path]
		if !ok {
			doc = commands
		}
		_, _ = w.Write(doc)
	})
}

// ServeBody answers every path with the same body: a lying node.
func ServeBody(tb testing.TB, dir, name, body string) string {
	tb.Helper()
	return ServeHandler(tb, dir, name, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })
}

// ServeHandler serves any node on a socket in dir until the test ends.
func ServeHandler(tb testing.TB, dir, name string, h http.HandlerFunc) string {
	tb.Helper()
	path := filepath.Join(dir, name+".sock")
	ln, err := new(net.ListenConfig).Listen(tb.Context(), "unix", path)
	if err != nil {
		tb.Fatal(err)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("close node %s: %v", name, err)
		}
		<-done
	})
	return "unix:" + path
}
