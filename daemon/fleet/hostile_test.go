package fleet_test

import (
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/fleettest"
)

// hostile are misbehaving nodes, each with the expected reason in its row. Those that only a
// timeout ends get the shortest one.
var hostile = map[string]struct {
	node http.HandlerFunc
	want introspect.Reason
}{
	"garbage":       {writes("\x00\xff\x1b[2J\x07 no JSON"), introspect.ReasonNotJSON},
	"empty":         {writes(""), introspect.ReasonNotJSON},
	"html":          {writes("<html><body>502 Bad Gateway</body></html>"), introspect.ReasonNotJSON},
	"a number":      {writes("42"), introspect.ReasonMalformed},
	"null":          {writes("null"), introspect.ReasonMalformed},
	"wrong JSON":    {writes(`{"kind":"Pod","items":[]}`), introspect.ReasonMalformed},
	"wrong types":   {writes(`{"kind":"NodeSummary","cards":{"total":"many"}}`), introspect.ReasonMalformed},
	"absurd counts": {writes(`{"kind":"NodeSummary","cards":[{"total":-9}]}`), introspect.ReasonMalformed},
	"deep JSON":     {writes(strings.Repeat("[", 100_000)), introspect.ReasonNotJSON},
	"8 MiB":         {writes(`{"kind":"NodeSummary","node":"` + strings.Repeat("x", introspect.MaxBody) + `"}`), introspect.ReasonTooLarge},
	"status":        {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, introspect.ReasonStatus},
	"redirects": {func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
	}, introspect.ReasonStatus},
	"endless": {func(w http.ResponseWriter, r *http.Request) {
		for chunk := strings.Repeat(" ", 64<<10); r.Context().Err() == nil; {
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
		}
	}, introspect.ReasonTooLarge},
	"half": {func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"kind":"NodeSummary"`)
	}, introspect.ReasonTransport},
	"hangs up": {raw(func(c net.Conn) {}), introspect.ReasonTransport},
	"not HTTP": {raw(func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-OpenSSH_9.6\r\n") }), introspect.ReasonNotHTTP},
	"long headers": {raw(func(c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n")
		for line := "X: " + strings.Repeat("x", 64<<10) + "\r\n"; ; {
			if _, err := io.WriteString(c, line); err != nil {
				return
			}
		}
	}), introspect.ReasonTransport},
	"silent":        {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, introspect.ReasonTimeout},
	"slow":          {drips, introspect.ReasonTimeout},
	"no end of 1xx": {raw(func(c net.Conn) { endlessly(c, "HTTP/1.1 102 Processing\r\n\r\n") }), introspect.ReasonTransport},
}

func writes(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}

// raw answers a request with raw bytes, then closes the connection.
func raw(answer func(net.Conn)) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		answer(c)
		_ = c.Close()
	}
}

func endlessly(c net.Conn, text string) {
	for {
		if _, err := io.WriteString(c, text); err != nil {
			return
		}
	}
}

// drips sends a byte now and then, so that no single read takes long.
func drips(w http.ResponseWriter, r *http.Request) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
		if _, err := io.WriteString(w, " "); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
	}
}

// TestSweep_HostileNodes: each row has the right reason, and the other nodes are read as
// usual. Only slow answers cause a wait.
func TestSweep_HostileNodes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var targets []fleet.Target
		for _, name := range slices.Sorted(maps.Keys(hostile)) {
			targets = append(targets, fleet.Target{Name: name, Dial: fleettest.ServePipe(t, hostile[name].node).Dial})
		}
		targets = append(targets, fleet.Target{Name: "good", Dial: fleettest.ServePipe(t, writes(`{"kind":"NodeSummary"}`)).Dial})
		f := newFleet(t, fleet.Options{Targets: targets})
		start := time.Now()
		list := f.Sweep(t.Context(), fleet.Query{})
		if took := time.Since(start); took > fleet.RequestTimeout+100*time.Millisecond {
			t.Errorf("it took %s", took)
		}
		for i, n := range list.Items {
			want := hostile[n.Metadata.Name].want
			switch {
			case n.Metadata.Name != targets[i].Name:
				t.Errorf("row %d is %s, want %s", i, n.Metadata.Name, targets[i].Name)
			case n.Metadata.Name == "good":
				if n.State != document.StateLive || n.Error != nil {
					t.Errorf("good: %s %+v", n.State, n.Error)
				}
			case n.Error == nil || n.Error.Reason != want || n.Summary != nil || n.State != document.StateUnreachable || len(n.Error.Message) > 300:
				t.Errorf("%s: %s %+v, want %s", n.Metadata.Name, n.State, n.Error, want)
			}
		}
		if !list.Partial || len(list.Errors) != len(hostile) {
			t.Errorf("partial %v, %d errors of %d", list.Partial, len(list.Errors), len(hostile))
		}
	})
}

// TestSweep_HostileENIs: if a node's other answers are bad, its good summary is kept.
func TestSweep_HostileENIs(t *testing.T) {
	t.Parallel()
	for name, h := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				node := fleettest.ServePipe(t, func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == introspect.PathSummary {
						_, _ = io.WriteString(w, `{"kind":"NodeSummary"}`)
						return
					}
					h.node(w, r)
				})
				f := newFleet(t, fleet.Options{Targets: []fleet.Target{{Name: "n", Dial: node.Dial}}})
				n := f.Sweep(t.Context(), fleet.Query{ENIs: true}).Items[0]
				if n.State != document.StateLive || n.Summary == nil || n.ENIs != nil || n.Error == nil || fleet.Word(n) != fleet.CodePartlyReadable {
					t.Errorf("%s %+v", n.State, n.Error)
				}
			})
		})
	}
}
