package fleetsim

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// bigBody is larger than any reader accepts.
const bigBody = 9 << 20

// serveNode answers requests to a node.
func (s *Sim) serveNode(w http.ResponseWriter, r *http.Request) {
	at, ok := r.Context().Value(streamKey{}).(stream)
	if !ok {
		http.Error(w, "no node", http.StatusInternalServerError)
		return
	}
	n := at.node
	if reason := n.refuses(at.port); reason != "" && !(at.port == IntrospectionPort && n.has(UnixSocket)) {
		panic(http.ErrAbortHandler) // it has gone away
	}
	if n.misbehaves(w, r) {
		return
	}
	w.Header().Set("Date", s.now().UTC().Format(http.TimeFormat))
	switch {
	case at.port == MetricsPort:
		n.metrics(w)
	case n.release != "":
		n.serveUpstream(w, r)
	default:
		n.serveOurs(w, r)
	}
}

// misbehaves answers as the node's trait requires, and reports whether it has such a trait.
func (n *node) misbehaves(w http.ResponseWriter, r *http.Request) bool {
	for _, t := range n.traits {
		switch t {
		case Slow:
			if !wait(r.Context(), 1500*time.Millisecond) {
				return true
			}
		case Dead:
			<-r.Context().Done()
			return true
		case Half:
			w.Header().Set("Content-Length", "4096")
			_, _ = w.Write([]byte(`{"apiVersion":"cnictl/v1alpha1","kind":"NodeSummary","version":"`))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case Garbage:
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = conn.Write([]byte("\x00\xff\xfe\x1b]0;owned\a not HTTP at all \r\n\r\n\x80\x81"))
				_ = conn.Close()
			}
			return true
		case WrongJSON:
			_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"surprise"},"cards":"many","0":[1,2,3]}`))
			return true
		case Huge:
			w.Header().Set("Content-Length", strconv.Itoa(bigBody+len(`{"0":""}`)))
			_, _ = w.Write([]byte(`{"0":"`))
			for left := bigBody; left > 0; left -= 64 << 10 {
				if _, err := w.Write([]byte(strings.Repeat("x", min(left, 64<<10)))); err != nil {
					return true
				}
			}
			_, _ = w.Write([]byte(`"}`))
			return true
		case Endless:
			for r.Context().Err() == nil {
				if _, err := w.Write([]byte(strings.Repeat(" ", 4096))); err != nil || http.NewResponseController(w).Flush() != nil || !wait(r.Context(), 20*time.Millisecond) {
					return true
				}
			}
			return true
		}
	}
	return false
}

// metrics writes metrics with upstream's names, for both kinds of nodes.
func (n *node) metrics(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	n.withWorld(func(x *world) {
		snap := x.Book.Snapshot()
		kind, _ := x.Kind()
		t := snap.Totals(0, kind, x.Now, cooldown)
		l := n.profile.limits
		for _, m := range []struct {
			name, kind string
			value      int
		}{
			{"awscni_add_ip_req_count", "counter", x.adds.Total},
			{"awscni_assigned_ip_addresses", "gauge", t.Assigned},
			{"awscni_eni_allocated", "gauge", len(snap.ENIs)},
			{"awscni_eni_max", "gauge", l.MaxENIs},
			{"awscni_ip_max", "gauge", l.MaxENIs * (l.IPv4PerENI - 1)},
			{"awscni_no_available_ip_addresses", "counter", *x.adds.Failed},
			{"awscni_total_ip_addresses", "gauge", t.Total},
			{"awscni_total_ipv4_prefixes", "gauge", t.Prefixes},
		} {
			fmt.Fprintf(w, "# HELP %s of a simulated node\n# TYPE %s %s\n%s %d\n", m.name, m.name, m.kind, m.name, m.value)
		}
		fmt.Fprintf(w, "# HELP awscni_build_info of a simulated node\n# TYPE awscni_build_info gauge\nawscni_build_info{goversion=\"go1.26\",version=%q} 1\n", strings.SplitAfter(n.image(), ":")[1])
		fmt.Fprintf(w, "# HELP awscni_ec2api_req_count of a simulated node\n# TYPE awscni_ec2api_req_count counter\n")
		for _, c := range x.callList() {
			fmt.Fprintf(w, "awscni_ec2api_req_count{fn=%q} %d\n", c.Action, c.Calls)
		}
	})
}
