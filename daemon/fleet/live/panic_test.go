package live_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/live"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
)

// bursting panics, as a reader that misinterprets an answer.
func bursting() string {
	var documents []string
	return documents[len(documents)]
}

// TestPanic_IsAnErrorOfItsNode: reading a node panics, in the sampler's goroutine or in one
// that the HTTP client starts. The other nodes are still read, and the node reports the
// error.
func TestPanic_IsAnErrorOfItsNode(t *testing.T) {
	t.Parallel()
	refused := func(context.Context) (net.Conn, error) { return nil, errors.New("refused") }
	for name, target := range map[string]fleet.Target{
		"the way to it": {Name: "hostile", Dial: func(context.Context) (net.Conn, error) { return nil, errors.New(bursting()) }},
		"its metrics":   {Name: "hostile", Dial: refused, Metrics: func(context.Context) ([]byte, error) { return []byte(bursting()), nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := run(t, live.Options{Roster: live.Static([]fleet.Target{target, newNode(t, "well").target()})})
				elapse(3 * time.Minute)
				v := b.View()
				n := v.Node("hostile")
				if n == nil || n.Error == nil || n.Error.Reason != introspect.ReasonMalformed || !strings.Contains(n.Error.Message, "index out of range") || !strings.Contains(n.Error.Message, "bug in cnictl") {
					t.Fatalf("%+v", n)
				}
				if s := b.Stats(); v.Node("well").State != document.StateLive || s.Failed < 2 || s.InFlight != 0 {
					t.Errorf("%s, %+v", v.Node("well").State, s)
				}
			})
		})
	}
}

// TestPanic_OfTheRoster: listing the nodes panics, and is retried.
func TestPanic_OfTheRoster(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := run(t, live.Options{Roster: burstingRoster{}})
		elapse(time.Minute)
		if s := b.Stats(); !strings.Contains(s.Problem, "index out of range") || s.Swept {
			t.Errorf("%+v", s)
		}
	})
}

type burstingRoster struct{}

func (burstingRoster) Watch(context.Context, func(fleet.Target), func(), func(string), func(error)) error {
	return errors.New(bursting())
}

// TestPanic_OfADocumentIsItsError: a Kubernetes request for a screen panics.
func TestPanic_OfADocumentIsItsError(t *testing.T) {
	t.Parallel()
	l, err := live.New(live.Options{
		Roster: live.Static(nil), Now: time.Now, Store: store.New(),
		Kubernetes: live.Kubernetes{Pods: func(context.Context, string) ([]watch.Pod, error) { return nil, errors.New(bursting()) }},
	})
	if err != nil {
		t.Fatal(err)
	}
	d := l.Detail(t.Context(), "n", watch.WantPods, watch.Query{})
	if e, failed := d.Errors[watch.WantPods]; !failed || !strings.Contains(e.Message, "index out of range") {
		t.Errorf("%+v", d.Errors)
	}
}
