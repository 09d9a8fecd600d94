package kube

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// reports are the times of what Run reports about the API server.
type reports struct{ lost, away, reached []time.Duration }

// watchReach runs a client whose API server answers as serve says, for a while.
func watchReach(t *testing.T, d time.Duration, serve func(ctx context.Context, at time.Duration) bool) (out reports) {
	t.Helper()
	began := time.Now()
	client, err := restClient(&rest.Config{Host: "http://api", Transport: tripper(func(r *http.Request) (*http.Response, error) {
		if !serve(r.Context(), time.Since(began)) {
			return nil, errors.New("connection refused")
		}
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"gitVersion":"v1.35.4"}`))}, nil
	})}, "")
	if err != nil {
		t.Fatal(err)
	}
	c := &Client{rest: client, limits: defaultLimits, pauses: defaultPauses(), changes: newChanges(), reach: newReach()}
	ctx, cancel := context.WithCancel(t.Context())
	go c.probe(ctx)
	now := func() time.Duration { return time.Since(began) }
	on := Changes{
		Reached: func(string) { out.reached = append(out.reached, now()) },
		Lost:    func(error) { out.lost = append(out.lost, now()) },
		Away:    func(error) { out.away = append(out.away, now()) },
	}
	end := time.After(d)
	for {
		c.reach.suspect() // as if every request failed
		select {
		case <-c.changes.ready:
			c.deliver(on)
			continue
		case <-time.After(time.Second):
			continue
		case <-end:
		}
		cancel()
		synctest.Wait()
		return out
	}
}

// TestAway: an outage is reported as long once, by a probe that was sent a minute or more
// into it, and each outage counts for itself.
func TestAway(t *testing.T) {
	t.Parallel()
	latest := AwayAfter + defaultPauses().Max + defaultLimits.version // the pause and the probe that a minute ends in
	for _, row := range []struct {
		name  string
		serve func(ctx context.Context, at time.Duration) bool
		away  []time.Duration // beginnings of the outages that become long
		lost  int
	}{
		{"never there", func(context.Context, time.Duration) bool { return false }, []time.Duration{0}, 1},
		{"never answers", func(ctx context.Context, _ time.Duration) bool { <-ctx.Done(); return false }, []time.Duration{0}, 1},
		{"there after 59 s", func(_ context.Context, at time.Duration) bool { return at >= 59*time.Second }, nil, 1},
		{"comes and goes", func(_ context.Context, at time.Duration) bool { return at/(40*time.Second)%2 == 1 }, nil, 8},
		{"gone later", func(_ context.Context, at time.Duration) bool { return at < 3*time.Minute }, []time.Duration{3 * time.Minute}, 1},
		{"gone twice", func(_ context.Context, at time.Duration) bool { return at%(5*time.Minute) > 3*time.Minute }, []time.Duration{0, 5 * time.Minute}, 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				got := watchReach(t, 10*time.Minute-time.Second, row.serve)
				if len(got.away) != len(row.away) || len(got.lost) != row.lost {
					t.Fatalf("away %v, want one each after %v; lost %v, want %d", got.away, row.away, got.lost, row.lost)
				}
				for i, at := range got.away {
					if since := at - row.away[i]; since < AwayAfter || since > latest+4*time.Second {
						t.Errorf("reported %v into the outage, want from %v to %v", since, AwayAfter, latest)
					}
				}
			})
		})
	}
}
