package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/testenv"
)

// answerEvents returns a /v1/events body. Items are event numbers; gaps are reason:number.
func answerEvents(epoch string, next int, items ...string) string {
	for i, item := range items {
		if reason, seq, ok := strings.Cut(item, ":"); ok {
			items[i] = fmt.Sprintf(`{"seq":%s,"kind":"gap","reason":%q}`, seq, reason)
		} else {
			items[i] = fmt.Sprintf(`{"seq":%s,"kind":"started"}`, item)
		}
	}
	return fmt.Sprintf(`{"kind":"NodeEvents","epoch":%q,"next":%d,"items":[%s]}`, epoch, next, strings.Join(items, ","))
}

func TestEvents_Refuses(t *testing.T) {
	t.Parallel()
	seen := Cursor{Epoch: "a", Seq: 3}
	for _, row := range []struct {
		body  string
		after Cursor
		want  string // in the error, "" if none
	}{
		{answerEvents("a", 0), Cursor{}, ""},
		{answerEvents("a", 9, "8", "9"), Cursor{}, ""},
		{answerEvents("a", 5, "4", "5"), seen, ""},
		{answerEvents("a", 3), seen, ""},
		{answerEvents("a", 9, "overflow:7", "8", "9"), seen, ""},
		{answerEvents("b", 2, "restart:0", "1", "2"), seen, ""},
		{answerEvents("b", 0, "restart:0"), seen, ""},
		{answerEvents("a", 5, "5"), seen, "event 5 after event 3"},
		{answerEvents("a", 3, "3"), seen, "event 3 after event 3"},
		{answerEvents("a", 6, "4", "6"), seen, "event 6 after event 4"},
		{answerEvents("a", 9, "overflow:7", "9"), seen, "event 9 after event 7"},
		{answerEvents("a", 4, "overflow:2", "3", "4"), seen, "a gap up to event 2 after event 3"},
		{answerEvents("b", 4, "4"), seen, `epoch "b" where "a" was asked for, without a gap`},
		{answerEvents("a", 9, "4"), seen, "next is 9 after event 4"},
		{answerEvents("a", 9), seen, "next is 9 after event 3"},
		{answerEvents("", 0), Cursor{}, `epoch "" with 0 events`},
		{`{"kind":"NodePlan"}`, seen, "kind \"NodePlan\" where a NodeEvents was expected"},
	} {
		_, err := serve(t, body(row.body)).Events(t.Context(), row.after, EventsOptions{})
		switch {
		case row.want == "" && err == nil:
		case err == nil || row.want == "" || !strings.Contains(err.Error(), row.want) || ReasonOf(err) != introspect.ReasonMalformed:
			t.Errorf("%s after %v: %v, want %q", row.body, row.after, err, row.want)
		}
	}
}

func TestClient_AsksWithParameters(t *testing.T) {
	t.Parallel()
	var asked atomic.Value
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.RequestURI)
		w.WriteHeader(http.StatusTeapot)
	})
	six := 6
	for want, call := range map[string]func() error{
		"/v1/plan": func() error { _, _, err := c.Plan(t.Context(), introspect.PlanQuery{}); return err },
		"/v1/plan?maxPods=6&warmIp=6": func() error {
			_, _, err := c.Plan(t.Context(), introspect.PlanQuery{WarmIP: &six, MaxPods: &six})
			return err
		},
		"/v1/failures": func() error { _, _, err := c.Failures(t.Context()); return err },
		"/v1/pod?name=a%26b&namespace=shop": func() error {
			_, _, err := c.Pod(t.Context(), introspect.PodRef{Namespace: "shop", Name: "a&b"})
			return err
		},
		"/v1/logs":   func() error { _, err := c.Logs(t.Context(), introspect.LogQuery{}); return err },
		"/v1/events": func() error { _, err := c.Events(t.Context(), Cursor{}, EventsOptions{}); return err },
		"/v1/events?epoch=e&limit=500&since=7&wait=30": func() error {
			_, err := c.Events(t.Context(), Cursor{"e", 7}, EventsOptions{Wait: time.Hour, Limit: 9999})
			return err
		},
		"/v1/logs?level=warn&lines=9&match=x&since=2026-11-21T03%3A00%3A20Z": func() error {
			_, err := c.Logs(t.Context(), introspect.LogQuery{Lines: 9, Level: "warn", Match: "x", Since: clock})
			return err
		},
	} {
		if err := call(); ReasonOf(err) != introspect.ReasonStatus || asked.Load() != want {
			t.Errorf("asked %s (%v), want %s", asked.Load(), err, want)
		}
	}
}

func TestClient_Faults(t *testing.T) {
	t.Parallel()
	fault := func(status int, code string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"kind":"Fault","code":"`+code+`","message":"what to do"}`)
		}
	}
	for name, row := range map[string]struct {
		h    http.HandlerFunc
		want introspect.Reason
		text string
	}{
		"upstream":              {body(`{"AvailableCommands":["/v1/enis"]}`), introspect.ReasonNoEndpoint, "does not know this path"},
		"not served":            {fault(404, introspect.FaultNotServed), introspect.ReasonNotServed, "what to do (not-served)"},
		"no such pod":           {fault(404, introspect.FaultNotFound), introspect.ReasonNotFound, "what to do (not-found)"},
		"bad parameter":         {fault(400, introspect.FaultBadParameter), introspect.ReasonBadRequest, "what to do"},
		"busy":                  {fault(503, introspect.FaultBusy), introspect.ReasonBusy, "what to do"},
		"another program's 404": {http.NotFound, introspect.ReasonNotFound, "answered HTTP status 404"},
		"a long one": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(500)
			_, _ = io.WriteString(w, `{"kind":"Fault","message":"`+strings.Repeat("x", 1<<20)+`"}`)
		}, introspect.ReasonStatus, "answered HTTP status 500"},
	} {
		_, _, err := serve(t, row.h).Pod(t.Context(), introspect.PodRef{Namespace: "a", Name: "b"})
		if ReasonOf(err) != row.want || !strings.Contains(fmt.Sprint(err), row.text) {
			t.Errorf("%s: %v", name, err)
		}
		var f *introspect.Fault
		if strings.HasPrefix(row.text, "what") != errors.As(err, &f) {
			t.Errorf("%s: fault %v", name, f)
		}
	}
}

// TestFollow_GoesOnAfterFailures: errors are yielded in between, and no event is yielded
// twice.
func TestFollow_GoesOnAfterFailures(t *testing.T) {
	t.Parallel()
	var n atomic.Int32
	answers := []string{answerEvents("a", 2, "1", "2"), "", "", answerEvents("a", 3, "3"), answerEvents("b", 1, "restart:0", "1"), "{}"}
	asked := make(chan string, len(answers))
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		answer := answers[n.Add(1)-1]
		asked <- r.URL.Query().Get("epoch") + r.URL.Query().Get("since")
		if answer == "" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, answer)
	})
	var got []string
	for e, err := range c.Follow(t.Context(), FollowOptions{Retry: time.Millisecond}) {
		if err != nil {
			got = append(got, string(ReasonOf(err)))
			continue
		}
		got = append(got, fmt.Sprint(e.Kind, e.Seq))
	}
	close(asked)
	var cursors []string
	for a := range asked {
		cursors = append(cursors, a)
	}
	if want := "started1 started2 busy busy started3 gap0 started1 malformed"; strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
	if want := ",a2,a2,a2,a3,b1"; strings.Join(cursors, ",") != want {
		t.Errorf("asked %s, want %s", strings.Join(cursors, ","), want)
	}
}

// TestFollow_InMeasure: a node that answers without waiting for news is not polled as fast
// as it answers.
func TestFollow_InMeasure(t *testing.T) {
	t.Parallel()
	const answers, pause = 4, 20 * time.Millisecond
	var n atomic.Int32
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1) <= answers {
			_, _ = io.WriteString(w, `{"kind":"NodeEvents","epoch":"a","next":0,"items":[]}`)
			return
		}
		_, _ = io.WriteString(w, "{}")
	})
	took := testenv.Took(func() {
		for _, err := range c.Follow(t.Context(), FollowOptions{Retry: pause}) {
			if ReasonOf(err) != introspect.ReasonMalformed {
				t.Errorf("error %v", err)
			}
		}
	})
	if took < answers*pause {
		t.Errorf("%d requests within %s", n.Load(), took)
	}
}

func TestFollow_EndsWithItsCaller(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	waits := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(waits)
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	go func() {
		<-waits
		cancel()
	}()
	for e, err := range newClient(t, s.URL).Follow(ctx, FollowOptions{}) {
		t.Errorf("%+v, %v", e, err)
	}
	original := serve(t, body(`{"AvailableCommands":["/v1/enis"]}`))
	n := 0
	for _, err := range original.Follow(t.Context(), FollowOptions{}) {
		if n++; ReasonOf(err) != introspect.ReasonNoEndpoint {
			t.Errorf("%v", err)
		}
	}
	if n != 1 {
		t.Errorf("%d errors", n)
	}
	for range serve(t, body(answerEvents("a", 2, "1", "2"))).Follow(t.Context(), FollowOptions{}) {
		break
	}
}
