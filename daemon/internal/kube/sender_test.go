package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"cnictl/daemon/kubeclient"
	"cnictl/testenv"
)

// eventServer is an API server that accepts events as a test says.
type eventServer struct {
	mu     sync.Mutex
	answer func(name string) (code int, body string)
	tried  int
	taken  []eventObject
}

func (s *eventServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var e eventObject
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&e) != nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried++
	code, body := s.answer(e.Regarding.Name)
	if code == http.StatusCreated {
		s.taken = append(s.taken, e)
	}
	w.WriteHeader(code)
	fmt.Fprint(w, body)
}

// becomes sets how events are answered from now on.
func (s *eventServer) becomes(answer func(name string) (int, string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer, s.tried = answer, 0
}

func (s *eventServer) attempts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tried
}

// notes returns the messages of accepted events, by object.
func (s *eventServer) notes() map[string][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string][]string{}
	for _, e := range s.taken {
		out[e.Regarding.Name] = append(out[e.Regarding.Name], e.Note)
	}
	return out
}

func (s *eventServer) client(t *testing.T) (*Client, *lines) {
	t.Helper()
	server := apiServer(t, s.ServeHTTP)
	c := connect(t, kubeconfig(t, server, server.URL), "x")
	c.pauses.First, c.pauses.Max = time.Millisecond, 4*time.Millisecond
	log := logTo(c)
	run(t, c)
	return c, log
}

func takes(string) (int, string) { return http.StatusCreated, "{}" }
func away(string) (int, string)  { return http.StatusServiceUnavailable, "away" }

// TestEmitLater_Outage: what happened during an outage is reported afterwards: once for each
// object, including the Node, and within the limits.
func TestEmitLater_Outage(t *testing.T) {
	t.Parallel()
	s := &eventServer{}
	s.becomes(away)
	c, log := s.client(t)
	c.EmitLater(newEvent(c.OwnNode()))
	for range 3 {
		for i := range 5 {
			c.EmitLater(newEvent(aboutPod(fmt.Sprint("p", i))))
		}
	}
	testenv.Eventually(t, "each was tried", func() bool { return s.attempts() > 20 })
	for i := range 2 * maxWaitingEvents {
		c.EmitLater(newEvent(aboutPod(fmt.Sprint("many", i))))
	}
	testenv.Eventually(t, "more was tried", func() bool { return s.attempts() > 40 })
	for i := range 5 {
		c.EmitLater(newEvent(aboutPod(fmt.Sprint("p", i))))
	}
	if n := log.containing("cannot send events"); n != 1 {
		t.Errorf("%d lines about the outage, want one", n)
	}

	s.becomes(takes)
	testenv.Eventually(t, "the Node's is sent", func() bool { return len(s.notes()["x"]) == 1 })
	testenv.Eventually(t, "those that pods may use are sent", func() bool { return len(s.notes()) >= 1+8 }) // before one more about the Node
	testenv.Eventually(t, "none waits", func() bool {
		c.events.mu.Lock()
		defer c.events.mu.Unlock()
		return len(c.events.waiting) == 0
	})
	// A new event about the Node overtakes all waiting ones.
	e := newEvent(c.OwnNode())
	e.Reason = "Other"
	c.EmitLater(e)
	testenv.Eventually(t, "another about the Node was sent", func() bool { return len(s.notes()["x"]) == 2 })
	if n := len(s.notes()); n > 1+9 {
		t.Errorf("%d objects are reported, want as many as may be", n)
	}
	for name, notes := range s.notes() {
		if len(notes) != 1 && name != "x" {
			t.Errorf("%s is reported %d times: %q", name, len(notes), notes)
		}
	}
	if n := log.containing("events can be sent again"); n != 1 {
		t.Errorf("%d lines about the end of the outage, want one", n)
	}
}

// TestEmitLater_ShortOutage: a failure costs no token and suppresses nothing: afterwards
// each object gets its event, which counts the repetitions.
func TestEmitLater_ShortOutage(t *testing.T) {
	t.Parallel()
	s := &eventServer{}
	s.becomes(away)
	c, _ := s.client(t)
	for round := range 3 {
		for i := range 5 {
			c.EmitLater(newEvent(aboutPod(fmt.Sprint("p", i))))
		}
		if round == 0 {
			testenv.Eventually(t, "it is known to be away", func() bool { return s.attempts() > 5 })
		}
	}
	testenv.Eventually(t, "they were tried more often than would be allowed", func() bool { return s.attempts() > 30 })
	s.becomes(takes)
	testenv.Eventually(t, "all are reported", func() bool { return len(s.notes()) == 5 })
	for name, notes := range s.notes() {
		if len(notes) != 1 || !strings.HasSuffix(notes[0], "(and 2 times since the last event)") {
			t.Errorf("%s: %q, want one that counts two more", name, notes)
		}
	}
}

// TestEmitLater_Refused: an event that the API server refuses is dropped, is not taken for
// an outage, and others are sent.
func TestEmitLater_Refused(t *testing.T) {
	t.Parallel()
	const terminating = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"details":{"causes":[{"reason":"NamespaceTerminating"}]}}`
	for name, tc := range map[string]struct {
		code  int
		body  string
		lines int
	}{
		"the namespace is gone":       {http.StatusNotFound, notFoundJSON, 0},
		"the namespace is terminated": {http.StatusForbidden, terminating, 0},
		"the right is missing":        {http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`, 1},
		"it is there already":         {http.StatusConflict, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"AlreadyExists","code":409}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &eventServer{}
			s.becomes(func(name string) (int, string) {
				if name == "good" {
					return takes(name)
				}
				return tc.code, tc.body
			})
			c, log := s.client(t)
			for _, name := range []string{"bad-0", "bad-1", "../x"} {
				c.EmitLater(newEvent(aboutPod(name)))
			}
			testenv.Eventually(t, "the bad ones were tried", func() bool { return s.attempts() == 2 })
			c.EmitLater(newEvent(aboutPod("good")))
			testenv.Eventually(t, "the good one is sent", func() bool { return len(s.notes()["good"]) == 1 })
			if n := log.containing("rejected an event"); n != tc.lines {
				t.Errorf("%d lines about refusals, want %d", n, tc.lines)
			}
			if n := log.containing("events can"); n != 0 {
				t.Errorf("it was taken for an outage:\n%s", log.text.String())
			}
			if n := s.attempts(); n != 3 {
				t.Errorf("%d attempts, want one of each", n)
			}
		})
	}
}

// TestEmitLater_First: while the API server answers, an event reports the first occurrence.
func TestEmitLater_First(t *testing.T) {
	t.Parallel()
	s := &eventServer{}
	s.becomes(takes)
	server := apiServer(t, s.ServeHTTP)
	c := connect(t, kubeconfig(t, server, server.URL), "x")
	first, second := newEvent(aboutPod("p")), newEvent(aboutPod("p"))
	second.Note = "less is known"
	// By now it has been chosen, and waits for its turn.
	c.pauses.Jitter = func(time.Duration) time.Duration {
		c.EmitLater(second)
		return 0
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { c.sendEvents(ctx); close(done) }()
	c.EmitLater(first)
	testenv.Eventually(t, "it is sent", func() bool { return len(s.notes()["p"]) == 1 })
	cancel()
	<-done
	if got := s.notes()["p"]; len(got) != 1 || got[0] != first.Note {
		t.Errorf("got %q, want %q", got, first.Note)
	}
}

// TestEmitLater_Poison: an event that always fails delays the others by no more than a
// pause.
func TestEmitLater_Poison(t *testing.T) {
	t.Parallel()
	s := &eventServer{}
	s.becomes(func(name string) (int, string) {
		if name == "x" {
			return away(name)
		}
		return takes(name)
	})
	c, _ := s.client(t)
	c.EmitLater(newEvent(c.OwnNode()))
	testenv.Eventually(t, "it was tried", func() bool { return s.attempts() > 1 })
	c.EmitLater(newEvent(aboutPod("p")))
	testenv.Eventually(t, "the other is sent", func() bool { return len(s.notes()["p"]) == 1 })
}

// TestEventName: for any object name, cut anywhere, the result is a valid name.
func TestEventName(t *testing.T) {
	t.Parallel()
	for _, about := range []string{"a", strings.Repeat("a", kubeclient.MaxName), strings.Repeat("a.", 126) + "a", strings.Repeat("a-", 126) + "a", "a" + strings.Repeat("-", 251) + "a"} {
		for n := range len(about) - 1 {
			about := about[:n] + "a"
			name := eventName(about, time.Unix(0, 1<<60))
			if err := kubeclient.CheckName("event", name); err != nil || strings.Contains(name, "-.") {
				t.Errorf("%q: %q: %v", about, name, err)
			}
		}
	}
}
