package fleetsim

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
)

// clock is a clock that the test advances.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// get queries a node directly, past the API server.
func get(ctx context.Context, s *Sim, node, path string) (*http.Response, []byte, error) {
	return getMost(ctx, s, node, path, 16<<20)
}

// getMost is get, but reads at most most bytes of the answer.
func getMost(ctx context.Context, s *Sim, node, path string, most int64) (*http.Response, []byte, error) {
	tr := &http.Transport{DisableKeepAlives: true, DisableCompression: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return s.DialNode(ctx, node, IntrospectionPort)
	}}
	defer tr.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, nil)
	if err != nil {
		return nil, nil, err
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, most))
	return resp, body, err
}

func mustGet(t *testing.T, s *Sim, node, path string) []byte {
	t.Helper()
	resp, body, err := get(t.Context(), s, node, path)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s of %s: %v, %v: %.200s", path, node, resp, err, body)
	}
	return body
}

func decode(t *testing.T, body []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(body, into); err != nil {
		t.Fatalf("%v: %.300s", err, body)
	}
}

// TestUpstream_EveryRelease: each release answers in its own format, which we can read.
func TestUpstream_EveryRelease(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := New(t, Options{Nodes: 100, Seed: 3, UpstreamShare: 1, Now: c.Now})
	c.add(time.Hour)
	shapes := map[string]introspect.Shape{
		"v1.7.10": introspect.ShapeAddresses, "v1.9.3": introspect.ShapeCIDRs, "v1.10.4": introspect.ShapeFamilies, "v1.11.5": introspect.ShapeFamilies,
		"v1.12.6": introspect.ShapeFamilies, "v1.15.5": introspect.ShapeFamilies, "v1.18.6": introspect.ShapeFamilies, "v1.19.6": introspect.ShapeFamilies,
		"v1.20.5": introspect.ShapeCards, "v1.21.1": introspect.ShapeCards, "v1.22.3": introspect.ShapeSubnets, "v1.23.0": introspect.ShapeBlanked,
	}
	seen := map[string]bool{}
	for _, n := range s.Nodes() {
		body := mustGet(t, s, n.Name, "/v1/enis")
		pool, err := introspect.Decode(body)
		if err != nil || pool.Shape != shapes[n.Release] || len(pool.Mismatches) > 0 {
			t.Fatalf("%s of %s: %v, %+v\n%.600s", n.Name, n.Release, err, pool, body)
		}
		seen[n.Release] = true
		for path, want := range map[string]string{"/v1/summary": "AvailableCommands", "/v1/ipamd-env-settings": "WARM_ENI_TARGET", "/v1/networkutils-env-settings": "AWS_VPC_ENI_MTU"} {
			var doc map[string]any
			decode(t, mustGet(t, s, n.Name, path), &doc)
			if doc[want] == nil {
				t.Errorf("%s of %s has no %s", path, n.Name, want)
			}
		}
	}
	if len(seen) != len(shapes) {
		t.Errorf("releases %v of %d", seen, len(shapes))
	}
}
