package store

import (
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
)

// TestWorst: STATUS shows the doctor's code of the worst problem, a cause before what follows from it, and
// the daemon's code where the doctor has none. Documents, filters and CSV keep the daemon's.
func TestWorst(t *testing.T) {
	t.Parallel()
	backoff := func(scope, code string) introspect.Backoff {
		return introspect.Backoff{Scope: scope, ID: "subnet-a", Cause: code, Until: t0.Add(time.Minute)}
	}
	for name, tt := range map[string]struct {
		change       func(*introspect.Summary)
		status, code string
	}{
		"well":     {func(*introspect.Summary) {}, "ok", "ok"},
		"cordoned": {func(s *introspect.Summary) { s.Cordoned = new(true) }, "cordoned", "cordoned"},
		"max-pods": {func(s *introspect.Summary) {
			s.MaxPods = &introspect.MaxPods{Value: new(110), TotalCapacity: new(29), Verdict: introspect.MaxPodsOver}
		}, "cap/max-pods", "max-pods-over"},
		"waits": {func(s *introspect.Summary) { s.WaitingADDs = new(3) }, "obs/add-waiting, 3 wait", "pool-dry"},
		"waits for a reason": {func(s *introspect.Summary) {
			s.WaitingADDs, s.Backoffs = new(3), []introspect.Backoff{backoff("subnet", "subnet-exhausted")}
		}, "ip/subnet-exhausted, 3 wait", "pool-dry"},
		"recovered": {func(s *introspect.Summary) {
			s.Backoffs, s.Subnets = []introspect.Backoff{backoff("subnet", "subnet-exhausted")}, []introspect.Subnet{{ID: "subnet-a", Available: new(9)}}
		}, "ip/alloc-backoff", "subnet-exhausted"},
		"cause before observation": {func(s *introspect.Summary) {
			s.Cards[0].Free, s.Backoffs = 0, []introspect.Backoff{backoff("attach", "ec2-throttled")}
		}, "aws/throttled", "no-free-address"},
		"a code of a later release": {func(s *introspect.Summary) {
			s.Backoffs, s.ConfigProblems = []introspect.Backoff{backoff("attach", "later")}, new(1)
		}, "later", "later"},
	} {
		n := sample("n", t0, 9, 0, 9)
		tt.change(n.Summary)
		if got := NewNode(n); got.Status() != tt.status || got.Code != tt.code {
			t.Errorf("%s: STATUS %q, code %q; want %q, %q", name, got.Status(), got.Code, tt.status, tt.code)
		}
	}
}
