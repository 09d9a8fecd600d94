package kube

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"cnictl/testenv"
)

// script is an API server that answers as a test says, and records all requests.
type script struct {
	mu    sync.Mutex
	asked []url.Values // for pods: lists and watches, in order
}

// client returns a client of a server that answers lists and watches of pods with answer.
func (s *script) client(t *testing.T, answer func(n int, q url.Values, w http.ResponseWriter)) *Client {
	t.Helper()
	server := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			fmt.Fprint(w, `{"gitVersion":"v1.35.4"}`)
			return
		}
		s.mu.Lock()
		n := len(s.asked)
		s.asked = append(s.asked, r.URL.Query())
		s.mu.Unlock()
		answer(n, r.URL.Query(), w)
		if r.URL.Query().Get("watch") != "" && n > 5 {
			<-r.Context().Done()
		}
	})
	return connect(t, kubeconfig(t, server, server.URL), "x")
}

func (s *script) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

// follow follows only pods until ok, and returns the requests.
func (s *script) follow(t *testing.T, c *Client, ok func() bool) []url.Values {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		follow(c, pods, "spec.nodeName=x", parsePod, c.pods, podsChanged)(ctx)
		close(done)
	}()
	testenv.Eventually(t, "the pods are as they should be", ok)
	cancel()
	<-done
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func podList(version, token string, names ...string) string {
	var items []string
	for _, n := range names {
		items = append(items, podText(n, version))
	}
	return fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":%q,"continue":%q},"items":[%s]}`, version, token, strings.Join(items, ","))
}

func podText(name, version string) string {
	return fmt.Sprintf(`{"metadata":{"namespace":"a","name":%q,"resourceVersion":%q}}`, name, version)
}

func frameText(kind, object string) string {
	return fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", kind, object)
}

const expired = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","message":"too old","code":410}`

// TestFollow_Pages: a list whose second page comes too late is read again, with a consistent
// read. Nothing of an incomplete list is stored.
func TestFollow_Pages(t *testing.T) {
	t.Parallel()
	var s script
	c := s.client(t, func(n int, q url.Values, w http.ResponseWriter) {
		switch n {
		case 0, 2:
			fmt.Fprint(w, podList(fmt.Sprint(n+5), "next", "a", "b"))
		case 1:
			w.WriteHeader(http.StatusGone)
			fmt.Fprint(w, expired)
		case 3:
			fmt.Fprint(w, podList("7", "", "c"))
		default:
			fmt.Fprint(w, frameText("ADDED", podText("d", "8")))
		}
	})
	asked := s.follow(t, c, func() bool { return c.pods.size() == 4 })
	for i, want := range []url.Values{
		{"resourceVersion": {"0"}, "limit": {"500"}},
		{"continue": {"next"}, "limit": {"500"}},
		{"limit": {"500"}},
		{"continue": {"next"}, "limit": {"500"}},
	} {
		want.Set("fieldSelector", "spec.nodeName=x")
		if asked[i].Encode() != want.Encode() {
			t.Errorf("request %d: %s, want %s", i, asked[i].Encode(), want.Encode())
		}
	}
	if got := asked[4]; got.Get("watch") != "true" || got.Get("resourceVersion") != "7" || got.Get("allowWatchBookmarks") != "true" {
		t.Errorf("the watch: %s", got.Encode())
	}
}

// TestFollow_GoesOn: a watch that ends continues from the last version, including a
// bookmark's; if that version is gone, a list follows that is no older.
func TestFollow_GoesOn(t *testing.T) {
	t.Parallel()
	var s script
	c := s.client(t, func(n int, q url.Values, w http.ResponseWriter) {
		switch n {
		case 0:
			fmt.Fprint(w, podList("5", "", "a", "b"))
		case 1:
			fmt.Fprint(w, frameText("MODIFIED", podText("a", "6")), frameText("BOOKMARK", `{"metadata":{"resourceVersion":"9"}}`))
		case 2:
			fmt.Fprint(w, frameText("DELETED", podText("b", "10")), frameText("ERROR", expired))
		case 3:
			fmt.Fprint(w, podList("12", "", "z"))
		}
	})
	asked := s.follow(t, c, func() bool { _, ok, _ := c.pods.get("a/z"); return ok && s.count() > 4 })
	for i, want := range []string{"0", "5", "9", "10", "12"} {
		if got := asked[i].Get("resourceVersion"); got != want {
			t.Errorf("request %d is for version %s, want %s", i, got, want)
		}
		if watch := asked[i].Get("watch") != ""; watch != (i == 1 || i == 2 || i == 4) {
			t.Errorf("request %d is a watch: %v", i, watch)
		}
		if asked[i].Get("limit") != "" && i == 3 {
			t.Error("a list that the API server's cache can answer has a limit")
		}
	}
	if c.pods.size() != 1 {
		t.Errorf("%d pods are stored", c.pods.size())
	}
}

// TestFollow_Nonsense: invalid answers end neither the daemon nor the watch, are not stored,
// and are retried only after a pause.
func TestFollow_Nonsense(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(url.Values, http.ResponseWriter){
		"nothing": func(url.Values, http.ResponseWriter) {},
		"half": func(_ url.Values, w http.ResponseWriter) {
			fmt.Fprint(w, `{"metadata":{"resourceVersion":"1"},"items":[{`)
		},
		"text":          func(_ url.Values, w http.ResponseWriter) { fmt.Fprint(w, `<html>`) },
		"null":          func(_ url.Values, w http.ResponseWriter) { fmt.Fprint(w, `null`) },
		"other types":   func(_ url.Values, w http.ResponseWriter) { fmt.Fprint(w, `{"metadata":7,"items":"x"}`) },
		"no version":    func(_ url.Values, w http.ResponseWriter) { fmt.Fprint(w, `{"metadata":{},"items":[]}`) },
		"busy":          func(_ url.Values, w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) },
		"broken":        func(_ url.Values, w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
		"always gone":   func(_ url.Values, w http.ResponseWriter) { w.WriteHeader(http.StatusGone); fmt.Fprint(w, expired) },
		"hangs up":      func(url.Values, http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"short watches": watches(""),
		"odd watches":   watches(`{"type":"ADDED","object":7}`),
		"odd objects":   watches(frameText("ADDED", `{"metadata":[]}`)),
		"failed watch":  watches(frameText("ERROR", `7`)),
		"gone watch":    watches(frameText("ERROR", expired)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s script
			c := s.client(t, func(_ int, q url.Values, w http.ResponseWriter) { answer(q, w) })
			took := testenv.Took(func() { s.follow(t, c, func() bool { return s.count() > 5 }) })
			// Six requests have at least two pauses in between; every other one may succeed.
			if least := c.pauses.First/2 + c.pauses.First; took < least {
				t.Errorf("six requests in %v, want pauses of %v", took, least)
			}
			if c.pods.size() != 0 {
				t.Errorf("%d pods are stored", c.pods.size())
			}
		})
	}
}

// watches answers lists with no items, and watches with text.
func watches(text string) func(url.Values, http.ResponseWriter) {
	return func(q url.Values, w http.ResponseWriter) {
		if q.Get("watch") == "" {
			fmt.Fprint(w, podList("1", ""))
			return
		}
		fmt.Fprint(w, text)
	}
}

// TestRun_NobodyListens: every member of Changes may be nil.
func TestRun_NobodyListens(t *testing.T) {
	t.Parallel()
	var s script
	c := s.client(t, func(_ int, q url.Values, w http.ResponseWriter) { watches("")(q, w) })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { c.Run(ctx, Changes{}); close(done) }()
	testenv.Eventually(t, "all are asked for", func() bool { return s.count() > 8 })
	cancel()
	<-done
}
