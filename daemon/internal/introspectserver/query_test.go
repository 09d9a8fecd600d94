package introspectserver

import (
	"errors"
	"net/http"
	"net/url"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
)

// FuzzQuery: for any query each parser returns either values within their bounds or a fault,
// never both.
func FuzzQuery(f *testing.F) {
	for _, s := range []string{
		"", "since=3&epoch=a&wait=30&limit=500", "warmIp=5&maxPods=0", "namespace=a&name=b", "lines=1&level=WARN&since=2026-11-21T14:02:11Z&match=%00",
		"lines=1;2", "a&a=&=", "wait=+1", "since=18446744073709551616", "%zz",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		r := &http.Request{URL: &url.URL{RawQuery: raw}}
		isFault := func(err error) bool {
			var fault *fault
			if err != nil && (!errors.As(err, &fault) || fault.status != http.StatusBadRequest || len(fault.doc.Message) > maxSentence+3) {
				t.Fatalf("%q: %v", raw, err)
			}
			return err != nil
		}
		if q, err := parseEventQuery(r); !isFault(err) && (q.wait < 0 || q.wait > introspect.MaxEventWait*time.Second || q.limit < 1 || q.limit > introspect.MaxEvents) {
			t.Fatalf("%q: %+v", raw, q)
		}
		if q, err := parsePlanQuery(r); !isFault(err) {
			for _, p := range q.Parameters() {
				if n := *p.Value; n != nil && (*n < 0 || *n > introspect.MaxTarget) {
					t.Fatalf("%q: %s is %d", raw, p.Name, *n)
				}
			}
		}
		if pod, err := parsePodQuery(r); !isFault(err) && (pod.Name == "" || pod.Namespace == "" || len(pod.Name) > 253) {
			t.Fatalf("%q: %+v", raw, pod)
		}
		if q, err := parseLogQuery(r); !isFault(err) && (q.Lines < 1 || q.Lines > introspect.MaxLogLines || len(q.Match) > introspect.MaxLogMatch) {
			t.Fatalf("%q: %+v", raw, q)
		}
	})
}
