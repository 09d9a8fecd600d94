package logs

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/pages"
)

// TestFold: an entry in both the daemon's log and its events is one line, whichever is read first,
// with the details that only the event has. Unrelated lines stay.
func TestFold(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	took := int64(7342)
	pod := func(name string) *introspect.PodRef { return &introspect.PodRef{Namespace: "shop", Name: name} }
	logs := watch.Detail{Logs: &introspect.NodeLogs{Lines: []string{
		`{"level":"info","ts":"2026-11-21T14:00:00.100Z","msg":"a pod got an address","namespace":"shop","pod":"cart","ip":"10.0.0.1"}`,
		`{"level":"info","ts":"2026-11-21T14:00:00.200Z","msg":"address assigned","namespace":"shop","pod":"web","eni_id":"eni-1","ip":"10.0.0.2"}`,
		`{"level":"info","ts":"2026-11-21T14:00:09.000Z","msg":"pool action done","eni_id":"eni-1"}`,
	}}}
	events := watch.Detail{Events: &introspect.NodeEvents{Epoch: "e", Next: 4, Items: []introspect.Event{
		{Seq: 1, At: at, Kind: introspect.EventAddressAssigned, Pod: pod("cart"), Address: netip.MustParseAddr("10.0.0.1"), ENIID: "eni-9"},
		{Seq: 2, At: at, Kind: introspect.EventAddressAssigned, Pod: pod("web"), Address: netip.MustParseAddr("10.0.0.2"), ENIID: "eni-1"},
		{Seq: 3, At: at, Kind: introspect.EventAddressAssigned, Pod: pod("other"), Address: netip.MustParseAddr("10.0.0.3")},
		{Seq: 4, At: at.Add(9 * time.Second), Kind: introspect.EventActionDone, ENIID: "eni-1", Reason: "warm-ip-target", DurationMS: &took},
	}}}
	for name, order := range map[string][]watch.Detail{
		"the log first": {logs, events}, "the events first": {events, logs},
		"together": {{Logs: logs.Logs, Events: events.Events}},
	} {
		m := New(pages.Open{Node: "n"}).(*Model)
		for _, d := range order {
			m.take(m.tails[0], d)
		}
		if len(m.all) != 4 {
			t.Fatalf("%s: %d lines", name, len(m.all))
		}
		var text []string
		for _, l := range m.all {
			var b strings.Builder
			for _, span := range lineOf(l, repeats{}, at, nil, m.names).Parts {
				b.WriteString(span.Text)
			}
			text = append(text, b.String())
			if l.Kind == "" || l.Level != logline.Info {
				t.Errorf("%s: %+v", name, l)
			}
		}
		all := strings.Join(text, "\n")
		for _, want := range []string{"got an address  shop/cart  eni-9  10.0.0.1", "address assigned  shop/web  eni-1  10.0.0.2", "address-assigned shop/other", "pool action done  eni-1  warm-ip-target  in 7.3s"} {
			if strings.Count(all, want) != 1 {
				t.Errorf("%s: no %q in\n%s", name, want, all)
			}
		}
	}
}
