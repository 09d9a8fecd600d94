package logs

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/logline"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
	"cnictl/tui/show"
)

func TestParse(t *testing.T) {
	t.Parallel()
	before := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	l := parse("n", `{"level":"warn","ts":"2026-11-21T15:01:11.250+0100","caller":"a/b.go:1","msg":"ADD failed","namespace":"shop","pod":"cart","eni_id":"eni-1","ip":"10.0.0.1","cause":"pool-dry","detail":"two words","count":3}`, before)
	if !l.At.Equal(before.Add(71*time.Second+250*time.Millisecond)) || l.Level != logline.Warn || !l.Known || l.Text != "ADD failed" || l.Pod != "shop/cart" || l.ENI != "eni-1" || l.IP != "10.0.0.1" || l.Rest != `cause=pool-dry detail="two words" count=3` {
		t.Errorf("%+v", l)
	}
	for _, raw := range []string{"", "panic: x", "{", `{"level"`, `[1]`, `{"level":"info","ts":}`, "{}"} {
		if l := parse("n", raw, before); l.Text != show.Safe(raw) || !l.At.Equal(before) {
			t.Errorf("%q became %+v", raw, l)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"level":"info","ts":"2026-11-21T14:01:11.000Z","msg":"x","pod":"a/b","k":[1,{"z":null}]}`)
	f.Add("\x1b[2J{\u202e}")
	f.Add(`{"msg":"\u001b[2J","level":3,"ts":"9999999-01-01"}`)
	f.Fuzz(func(t *testing.T, text string) {
		before := time.Unix(1, 0)
		l := parse("node", text, before)
		for _, s := range []string{l.Text, l.Rest, l.Pod, l.ENI, l.IP, l.Node} {
			for _, r := range s {
				if !unicode.IsPrint(r) {
					t.Fatalf("%q of %q has %q", s, text, r)
				}
			}
			if len(s) > 6000 {
				t.Fatalf("%d bytes of a text", len(s))
			}
		}
		var raw map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &raw) != nil {
			return
		}
		// In a valid object with few members, the message is found.
		var m struct{ Msg *string }
		if len(raw) < maxMembers && strings.Count(text, `"msg"`) == 1 && json.Unmarshal([]byte(text), &m) == nil && raw["msg"] != nil && m.Msg != nil && *m.Msg != "" && l.Text != show.Safe(*m.Msg) {
			t.Fatalf("message of %q is %q", text, l.Text)
		}
	})
}

func TestTail_TakesEachLineOnce(t *testing.T) {
	t.Parallel()
	s := pagetest.Open(New(pages.Open{Node: pagetest.Plain}), pagetest.Fleet(), 120, 37)
	m := s.Page.(*Model)
	n := len(m.all)
	if n != 12 {
		t.Fatalf("%d lines of 4, 6 events and 2 of Kubernetes", n)
	}
	s.Wait(40)
	if len(s.Asked) < 4 || len(m.all) != n {
		t.Errorf("after %d readings %d lines, want %d", len(s.Asked), len(m.all), n)
	}
	if q := s.Asked[1].Query; q.Events.Next != 6 || q.Logs.Since.IsZero() || q.KubeEventsSince.IsZero() {
		t.Errorf("asked %+v", q)
	}
}

// TestTail_Upstream: for upstream's daemon, Kubernetes provides the container's log, each line once,
// and events, repeated only if they happened again.
func TestTail_Upstream(t *testing.T) {
	t.Parallel()
	s := pagetest.Open(New(pages.Open{Node: pagetest.Upstream}), pagetest.Fleet(), 120, 37)
	if want := watch.WantKubeEvents | watch.WantContainerLog; s.Asked[0].Want != want {
		t.Errorf("asked for %b, want %b", s.Asked[0].Want, want)
	}
	m := s.Page.(*Model)
	if len(m.all) != 4 {
		t.Fatalf("%d lines of 3 of the container and one event", len(m.all))
	}
	s.Wait(30)
	if len(s.Asked) < 3 || len(s.Asked) > 4 || len(m.all) != 4 {
		t.Errorf("%d lines after %d readings in 30 s", len(m.all), len(s.Asked))
	}
	tail := m.tails[0]
	again := watch.KubeEvent{UID: "3", At: s.Fleet.Now(), Count: 2, Kind: "Pod", Object: "a/b", Type: "Warning", Reason: "Unhealthy"}
	if got := tail.take(watch.Detail{KubeEvents: []watch.KubeEvent{again, again}}); len(got) != 1 || got[0].Pod != "a/b" || got[0].Rest != "2 times" || got[0].Level != logline.Warn {
		t.Errorf("an event that happened again is %+v", got)
	}
	if q := tail.query(); !q.KubeEventsSince.Equal(again.At) || q.Container.Since.IsZero() {
		t.Errorf("asks for %+v", q)
	}
}

func TestTail_IsBounded(t *testing.T) {
	t.Parallel()
	m := New(pages.Open{Node: "n"}).(*Model)
	at := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	for i := range maxLines/introspect.MaxLogLines + 2 {
		doc := &introspect.NodeLogs{}
		for range introspect.MaxLogLines {
			at = at.Add(time.Second)
			doc.Lines = append(doc.Lines, string(logline.End(logline.Append(nil, logline.Info, at, "", "x"))))
		}
		d := watch.Detail{Logs: doc}
		m.take(m.tails[0], d)
		if len(m.all) > maxLines || len(m.tails[0].log.seen) > introspect.MaxLogLines {
			t.Fatalf("round %d: %d lines, %d remembered", i, len(m.all), len(m.tails[0].log.seen))
		}
	}
	if m.dropped != 2*introspect.MaxLogLines {
		t.Errorf("%d dropped", m.dropped)
	}
}

// TestShown: the screen opens at info, which includes text without a level. Introspection requests,
// which upstream logs at info, are toggled by a separate key.
func TestShown(t *testing.T) {
	t.Parallel()
	m := New(pages.Open{Node: "n"}).(*Model)
	m.take(m.tails[0], watch.Detail{Logs: &introspect.NodeLogs{Lines: []string{
		`{"level":"debug","ts":"2026-11-21T14:00:00.000Z","msg":"plan"}`,
		`{"level":"info","ts":"2026-11-21T14:00:01.000Z","msg":"Handling http request: GET, from: 127.0.0.1:50958, URI: /v1/enis"}`,
		"panic: boom",
	}}})
	if got := m.shown(); len(got) != 1 || got[0].Text != "panic: boom" {
		t.Errorf("%d lines, want the panic", len(got))
	}
	for i, action := range []string{keymap.Access, keymap.Level, keymap.Access} { // both, only warnings, none
		m.do(pages.Context{}, action)
		if got, want := len(m.shown()), []int{2, 0, 0}[i]; got != want {
			t.Errorf("after %s: %d lines, want %d", action, got, want)
		}
	}
}

// TestUpdate_GoesBack: after seeking back, a recording shows only what was before that time.
func TestUpdate_GoesBack(t *testing.T) {
	t.Parallel()
	s := pagetest.Open(New(pages.Open{Node: pagetest.Plain}), pagetest.Fleet(), 120, 37)
	m := s.Page.(*Model)
	all := len(m.all)
	s.Deaf = true
	s.Fleet.Wait(-time.Minute)
	s.Send(pages.Second{Now: s.Fleet.Now()})
	if len(m.all) != 0 || m.view.Len() != 0 {
		t.Errorf("%d lines of the future", len(m.all))
	}
	s.Deaf = false
	s.Wait(31)
	if len(m.all) != all {
		t.Errorf("%d lines are read again, want %d", len(m.all), all)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	s := pagetest.Open(New(pages.Open{}), pagetest.Fleet(), 120, 37)
	m := s.Page.(*Model)
	l := m.List()
	_, all := l.Found()
	if err := l.SetFilter("pod=shop/cart*"); err != nil {
		t.Fatal(err)
	}
	if shown, _ := l.Found(); shown != 3 || all < 12 {
		t.Errorf("%d of %d lines", shown, all)
	}
	if l.SetFilter("re:(") == nil || l.Filter() != "pod=shop/cart*" {
		t.Error("a wrong filter took the place of the last good one")
	}
	if _, rows := l.Cells(); len(rows) != 3 {
		t.Errorf("%d rows to export", len(rows))
	}
	s.Do(keymap.First, keymap.In, keymap.ToNode)
	want := []pages.Open{{Screen: "pod", Node: pagetest.Plain, Pod: "shop/cart-7d9f-1"}, {Screen: "node", Node: pagetest.Plain}}
	if len(s.Opened) != 2 || s.Opened[0] != want[0] || s.Opened[1] != want[1] {
		t.Errorf("opened %+v", s.Opened)
	}
	_ = l.SetFilter("")
	s.Do(keymap.Level, keymap.Level)
	for _, x := range m.shown() {
		if x.Level < logline.Error {
			t.Errorf("%+v is below error", x)
		}
	}
	s.Do(keymap.Hold)
	s.Fleet.Documents = nil
	if !l.Frozen(s.Fleet.Now()) {
		t.Error("held, but not frozen")
	}
}

// TestGroup: a failure that is repeated is one line, the last, with how often; what is no warning stays
// as it is, and so does what differs in cause or object.
func TestGroup(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	of := func(second int, level logline.Level, text, pod, rest string) *line {
		return &line{From: fromLog, At: at.Add(time.Duration(second) * time.Second), Level: level, Known: true, Node: "n", Text: text, Pod: pod, Rest: rest}
	}
	lines := []*line{
		of(0, logline.Warn, "ADD failed", "a/x", "cause=pool-dry took=1s"), of(1, logline.Info, "assigned", "", ""), of(2, logline.Info, "assigned", "", ""),
		of(3, logline.Warn, "ADD failed", "a/y", "cause=pool-dry"), of(4, logline.Warn, "ADD failed", "a/x", "cause=throttled"),
		of(5, logline.Warn, "ADD failed", "a/x", "cause=pool-dry took=2s"),
	}
	got, times := group(lines)
	if want := lines[1:]; !slices.Equal(got, want) {
		t.Errorf("%d lines, want %d", len(got), len(want))
	}
	if r := times[lines[5]]; r.times != 2 || !r.since.Equal(at) {
		t.Errorf("the last has %+v", r)
	}
	if r := times[lines[3]]; r.times != 1 {
		t.Errorf("another pod's has %+v", r)
	}
}

// TestGroup_Once: a failed ADD is one line, the daemon's event, though the log and the kubelet say it
// too; what has another cause, pod or time stays.
func TestGroup_Once(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)
	of := func(from origin, second int, kind, pod, rest string) *line {
		return &line{
			From: from, At: at.Add(time.Duration(second) * time.Second), Level: logline.Error, Known: true, Node: "n",
			Kind: kind, Text: "failed", Pod: pod, Rest: rest,
		}
	}
	event := of(fromEvent, 0, "add-failed", "a/x", "")
	event.item.Cause = "pool-dry"
	other := []*line{
		of(fromLog, 0, "", "a/x", "cause=throttled"), of(fromLog, 0, "", "a/y", "cause=pool-dry"), of(fromLog, 9, "", "a/x", "cause=pool-dry"),
		of(fromKubernetes, 1, "BackOff", "a/x", ""), of(fromContainer, 0, "", "a/x", ""),
	}
	again := []*line{of(fromLog, 0, "", "a/x", "cause=pool-dry took=1s"), of(fromKubernetes, 2, sandboxFailed, "a/x", "")}
	got := once(slices.Concat([]*line{event}, again, other))
	if want := append([]*line{event}, other...); !slices.Equal(got, want) {
		t.Errorf("%d lines, want %d", len(got), len(want))
	}
	if got := once(slices.Concat(again, other)); len(got) != len(again)+len(other) {
		t.Error("lines of no event are left out")
	}
}
