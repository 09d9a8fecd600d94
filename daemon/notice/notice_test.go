package notice_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/notice"
)

var pod = notice.Ref{Kind: "Pod", Namespace: "default", Name: "web-0", UID: "u"}

// TestReason: every code has its own reason, in the API's form.
func TestReason(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../api/cause/testdata/codes.txt")
	if err != nil {
		t.Fatal(err)
	}
	form, seen := regexp.MustCompile(`^([A-Z][A-Za-z0-9]+)$`), map[string]string{}
	for _, code := range strings.Fields(string(text)) {
		reason := notice.Reason(cause.Code(code))
		if !form.MatchString(reason) || len(reason) > 128 || seen[reason] != "" {
			t.Errorf("%s has the reason %q, as %q", code, reason, seen[reason])
		}
		seen[reason] = code
		e := notice.For(cause.Code(code), pod, "", "why")
		if e.Reason != reason || e.Note == "" || e.Action == "" || !e.Warning || e.About != pod {
			t.Errorf("%s: %+v", code, e)
		}
	}
	for code, want := range map[cause.Code]string{
		"pool-dry": "PoolDry", "eni-attach-limit": "ENIAttachLimit", "ec2-throttled": "EC2Throttled",
		"multi-nic-disabled": "MultiNICDisabled", "ec2-unauthorized": "MissingIAMPermissions",
	} {
		if got := notice.Reason(code); got != want {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}

// TestFor_MissingPermission keeps upstream's wording, which people search for.
func TestFor_MissingPermission(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"CreateNetworkInterface", "ec2:CreateNetworkInterface"} {
		e := notice.For(cause.EC2Unauthorized, pod, action, "UnauthorizedOperation: you are not …")
		want := notice.Event{
			Reason: "MissingIAMPermissions", Action: "ec2:CreateNetworkInterface", Warning: true, About: pod,
			Note: "Unauthorized operation: failed to call ec2:CreateNetworkInterface due to missing permissions. Please refer https://github.com/aws/amazon-vpc-cni-k8s/blob/master/docs/iam-policy.md to attach relevant policy to IAM role",
		}
		if e != want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", action, e, want)
		}
	}
}

func TestFor_UnknownCode(t *testing.T) {
	t.Parallel()
	if e := notice.For("../x", pod, "", ""); e.Reason != "Internal" {
		t.Errorf("reason %q", e.Reason)
	}
	if e := notice.HostNetworkChanged(pod, []string{"pod-rule", "eni-route"}, "rule was missing"); e.Reason != "HostNetworkChanged" || !e.Warning || !strings.Contains(e.Note, "(pod-rule, eni-route): rule was missing") {
		t.Errorf("host network changed: %+v", e)
	}
	if e := notice.SubnetExclusionUnknown(pod, "subnet-1", "no answer"); e.Reason != "SubnetExclusionCheckFailed" || !strings.Contains(e.Note, "subnet-1") {
		t.Errorf("%+v", e)
	}
}

// FuzzFor: whatever text others provide, the API server can accept the event.
func FuzzFor(f *testing.F) {
	f.Add("pool-dry", "", "why\x00\nand", 0)
	f.Add("ec2-unauthorized", strings.Repeat("é", 200), "", 3)
	f.Add("ec2-error", "ec2:X", strings.Repeat("…", 2000), 1<<30)
	f.Add("nothing", "\xff", "\xff\xfe", -1)
	f.Fuzz(func(t *testing.T, code, action, detail string, repeated int) {
		e := notice.For(cause.Code(code), pod, action, detail).Repeated(repeated)
		if len(e.Note) == 0 || len(e.Note) > 1024 || len(e.Action) == 0 || len(e.Action) > 128 {
			t.Errorf("note of %d bytes, action of %d", len(e.Note), len(e.Action))
		}
		for _, text := range []string{e.Note, e.Action, e.Reason} {
			if !utf8.ValidString(text) || strings.ContainsAny(text, "\n\r\x00") {
				t.Errorf("%q", text)
			}
		}
		if repeated > 0 && !strings.Contains(e.Note, fmt.Sprintf("%d times", repeated)) {
			t.Errorf("%q does not contain %d", e.Note, repeated)
		}
	})
}

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func event(name, reason string) notice.Event {
	return notice.Event{Reason: reason, About: notice.Ref{Kind: "Pod", Name: name}}
}

// TestLimiter_Spacing: one event of a kind per five minutes, then the count of the rest.
func TestLimiter_Spacing(t *testing.T) {
	t.Parallel()
	l, now := notice.NewLimiter(notice.DefaultPolicy()), start
	for _, step := range []struct {
		after      time.Duration
		event      notice.Event
		ok         bool
		suppressed int
	}{
		{0, event("a", "X"), true, 0},
		{0, event("a", "X"), false, 0},
		{time.Minute, event("a", "X"), false, 0},
		{0, event("a", "Y"), true, 0},
		{0, event("b", "X"), true, 0},
		{4*time.Minute - 1, event("a", "X"), false, 0},
		{1, event("a", "X"), true, 3},
		{5 * time.Minute, event("a", "X"), true, 0},
		{-10 * time.Minute, event("a", "X"), false, 0}, // the clock went back
	} {
		now = now.Add(step.after)
		if n, ok := l.Allow(now, step.event); ok != step.ok || n != step.suppressed {
			t.Errorf("%v %s %s: %v with %d suppressed, want %v with %d", now, step.event.About.Name, step.event.Reason, ok, n, step.ok, step.suppressed)
		}
	}
}

// TestLimiter_Buckets: 25 events about an object at once and one more every five minutes;
// and the limits over all objects.
func TestLimiter_Buckets(t *testing.T) {
	t.Parallel()
	policy := notice.DefaultPolicy()
	policy.TotalBurst, policy.TotalRefill = 1000, time.Second
	l, allowed := notice.NewLimiter(policy), 0
	for i := range 60 {
		if _, ok := l.Allow(start, event("a", fmt.Sprint("R", i))); ok {
			allowed++
		}
	}
	if allowed != policy.Burst {
		t.Errorf("%d of one object at once, want %d", allowed, policy.Burst)
	}
	for i, want := range []bool{true, false} {
		if _, ok := l.Allow(start.Add(policy.Refill), event("a", fmt.Sprint("S", i))); ok != want {
			t.Errorf("after one refill, event %d: %v", i, ok)
		}
	}
}

// TestLimiter_Fleet: the events of one node when all its pods fail at once, and of a
// thousand such nodes, which stay far below an API server's capacity.
func TestLimiter_Fleet(t *testing.T) {
	t.Parallel()
	const pods, most, mostInTenMinutes = 300, 9, 9 + 20
	l, sent := notice.NewLimiter(notice.DefaultPolicy()), 0
	for second := range 600 {
		for i := range pods {
			if _, ok := l.Allow(start.Add(time.Duration(second)*time.Second), event(fmt.Sprint("p", i), "X")); ok {
				sent++
			}
		}
		if second == 0 && sent != most {
			t.Errorf("%d events about pods at once, want %d", sent, most)
		}
	}
	if sent == 0 || sent > mostInTenMinutes {
		t.Errorf("%d events about pods in ten minutes, want at most %d", sent, mostInTenMinutes)
	}
}

// TestLimiter_NodesFirst: events about the Node always have room, however many there are
// about pods, and do not make more room for those.
func TestLimiter_NodesFirst(t *testing.T) {
	t.Parallel()
	policy := notice.DefaultPolicy()
	l := notice.NewLimiter(policy)
	about := func(kind string, i int) bool {
		_, ok := l.Allow(start, notice.Event{Reason: "X", About: notice.Ref{Kind: kind, Name: fmt.Sprint(i)}})
		return ok
	}
	for i := range 3 * policy.TotalBurst {
		about("Pod", i)
	}
	for i := range policy.ForNode + 1 {
		if ok := about("Node", i); ok != (i < policy.ForNode) {
			t.Errorf("event %d about a Node after those about pods: %v", i, ok)
		}
	}
	if about("Pod", -1) {
		t.Error("a pod got what there was no more of")
	}
}

// TestLimiter_Rates: random events never exceed a bound, checked by plain counting.
func TestLimiter_Rates(t *testing.T) {
	t.Parallel()
	policy := notice.Policy{
		Spacing: time.Minute, Burst: 3, Refill: 40 * time.Second, TotalBurst: 10, TotalRefill: 5 * time.Second, Objects: 1000,
	}
	random := rand.New(rand.NewPCG(1, 2))
	l, now := notice.NewLimiter(policy), start
	type sent struct {
		at           time.Time
		name, reason string
	}
	var all []sent
	held := map[string]int{}
	for range 20_000 {
		now = now.Add(time.Duration(random.Int64N(int64(2 * time.Second))))
		e := event(fmt.Sprint("p", random.IntN(20)), fmt.Sprint("R", random.IntN(5)))
		kind := e.About.Name + e.Reason
		n, ok := l.Allow(now, e)
		if !ok {
			held[kind]++
			continue
		}
		if n != held[kind] {
			t.Fatalf("%s: %d suppressed, want %d", kind, n, held[kind])
		}
		held[kind] = 0
		all = append(all, sent{now, e.About.Name, e.Reason})
	}
	if len(all) < 1000 {
		t.Fatalf("only %d of 20000 were let pass", len(all))
	}
	for i, a := range all {
		ofObject := 0
		for n, b := range all[i:] {
			gap := b.at.Sub(a.at)
			if n > 0 && b.name == a.name && b.reason == a.reason && gap < policy.Spacing {
				t.Fatalf("%v and %v are too close", a, b)
			}
			if b.name == a.name {
				ofObject++
				if most := policy.Burst + 1 + int(gap/policy.Refill); ofObject > most {
					t.Fatalf("%d of %s in %v", ofObject, a.name, gap)
				}
			}
			if most := policy.TotalBurst + 1 + int(gap/policy.TotalRefill); n+1 > most {
				t.Fatalf("%d in %v", n+1, gap)
			}
		}
	}
}

// TestLimiter_GiveBack: an event that could not be sent leaves no trace, and the next one
// sent counts what was held back meanwhile.
func TestLimiter_GiveBack(t *testing.T) {
	t.Parallel()
	policy := notice.Policy{
		Spacing: time.Minute, Burst: 3, Refill: 40 * time.Second, TotalBurst: 10, TotalRefill: 5 * time.Second, ForNode: 2, Objects: 1000,
	}
	random := rand.New(rand.NewPCG(3, 4))
	with, without, now, given := notice.NewLimiter(policy), notice.NewLimiter(policy), start, 0
	for range 20_000 {
		now = now.Add(time.Duration(random.Int64N(int64(2 * time.Second))))
		e := event(fmt.Sprint("p", random.IntN(20)), fmt.Sprint("R", random.IntN(5)))
		for range random.IntN(3) {
			if n, ok := with.Allow(now, e); ok {
				with.GiveBack(e, n)
				given++
			} else {
				without.Suppress(now, e)
			}
		}
		n, ok := with.Allow(now, e)
		if m, same := without.Allow(now, e); m != n || same != ok {
			t.Fatalf("%v with %d suppressed, want %v with %d", ok, n, same, m)
		}
	}
	if given < 500 {
		t.Errorf("only %d were given back", given)
	}
	l, e := notice.NewLimiter(policy), event("a", "X")
	l.Suppress(start, e)
	l.Suppress(start, e)
	n, _ := l.Allow(start, e)
	l.GiveBack(e, n)
	l.Suppress(start, e)
	if n, ok := l.Allow(start, e); n != 3 || !ok {
		t.Errorf("%v with %d suppressed, want 3", ok, n)
	}
}

// TestLimiter_Memory: the object without events for longest is forgotten.
func TestLimiter_Memory(t *testing.T) {
	t.Parallel()
	policy := notice.DefaultPolicy()
	policy.Objects, policy.TotalBurst = 2, 2000
	l := notice.NewLimiter(policy)
	allow := func(after time.Duration, name string) bool {
		_, ok := l.Allow(start.Add(after), event(name, "X"))
		return ok
	}
	if !allow(0, "a") || !allow(1, "b") || allow(2, "a") || !allow(3, "c") {
		t.Fatal("the first of each must pass, and no second")
	}
	if allow(4, "a") {
		t.Error("a was forgotten although b was older")
	}
	if !allow(5, "b") {
		t.Error("b is still remembered")
	}
	for i := range 1000 {
		_, _ = l.Allow(start, event("many", fmt.Sprint(i)))
	}
	if _, ok := l.Allow(start.Add(time.Hour), event("many", "another")); ok {
		t.Error("reasons without end are remembered")
	}
}
