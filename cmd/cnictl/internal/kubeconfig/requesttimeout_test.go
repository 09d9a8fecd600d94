package kubeconfig

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestBoundRequests: requests time out if the answer does not arrive or is incomplete, but
// long-running requests do not.
func TestBoundRequests(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/silent" {
			_, _ = w.Write([]byte("half")) // the test checks what arrived
			w.(http.Flusher).Flush()
		}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer s.Close()
	client := &http.Client{Transport: boundRequests(50 * time.Millisecond)(http.DefaultTransport)}
	read := func(path string) (string, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(r)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		return string(b), err
	}
	for _, path := range []string{"/silent", "/slow"} {
		if _, err := read(path); err == nil || !strings.Contains(err.Error(), "no complete response within --request-timeout=50ms") {
			t.Errorf("%s: %v", path, err)
		}
	}
	go func() {
		for range 4 { // until long after the limit
			_, _ = read("/silent")
		}
		close(release)
	}()
	for _, path := range []string{"/api?watch=true", "/log?follow=true", "/pods/a/portforward", "/pods/a/exec"} {
		if got, err := read(path); err != nil || got != "half" {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
}
