package resync

import (
	"net/netip"
	"testing"
	"time"

	"cnictl/daemon/ipam"
)

func leaked(created string, change func(*ENI)) ENI {
	e := ENI{ID: "eni-1", Status: StatusAvailable, Description: "aws-K8S-i-0fedcba9876543210",
		Tags: map[string]string{TagInstanceID: "i-0fedcba9876543210", TagClusterName: "shop"}}
	if created != "" {
		e.Tags[TagCreatedAt] = created
	}
	if change != nil {
		change(&e)
	}
	return e
}

func TestLeaked(t *testing.T) {
	t.Parallel()
	at := func(age time.Duration) string { return morning.Add(-age).Format(time.RFC3339) }
	old := at(time.Hour)
	rows := []struct {
		name string
		eni  ENI
		in   LeakInput
		want LeakAction
	}{
		{"old", leaked(old, nil), LeakInput{}, LeakDelete},
		{"in this cluster", leaked(old, nil), LeakInput{ClusterName: "shop"}, LeakDelete},
		{"in another", leaked(old, nil), LeakInput{ClusterName: "bank"}, LeakSkip},
		{"in none", leaked(old, func(e *ENI) { delete(e.Tags, TagClusterName) }), LeakInput{ClusterName: "shop"}, LeakSkip},
		{"just old enough", leaked(at(LeakMinAge), nil), LeakInput{}, LeakDelete},
		{"too young", leaked(at(LeakMinAge-time.Second), nil), LeakInput{}, LeakSkip},
		{"with a pod's address", leaked(old, func(e *ENI) { e.Prefixes = []netip.Prefix{netip.MustParsePrefix("10.0.9.0/28")} }), LeakInput{InUse: []netip.Addr{netip.MustParseAddr("10.0.9.7")}}, LeakSkip},
		{"with another's address", leaked(old, func(e *ENI) { e.Prefixes = []netip.Prefix{netip.MustParsePrefix("10.0.9.0/28")} }), LeakInput{InUse: []netip.Addr{netip.MustParseAddr("10.0.9.17")}}, LeakDelete},
		{"young, of an earlier process of the node", leaked(at(time.Minute), nil), LeakInput{InstanceID: leaked("", nil).Tags[TagInstanceID], Started: morning.Add(-30 * time.Second)}, LeakDelete},
		{"young, of this process", leaked(at(20*time.Second), nil), LeakInput{InstanceID: leaked("", nil).Tags[TagInstanceID], Started: morning.Add(-30 * time.Second)}, LeakSkip},
		{"young, of another node", leaked(at(time.Minute), nil), LeakInput{InstanceID: "i-0ffffffffffffffff", Started: morning.Add(-30 * time.Second)}, LeakSkip},
		{"written by a clock that is ahead", leaked(at(-time.Minute), nil), LeakInput{}, LeakSkip},
		{"written by a clock that is wrong", leaked(at(-time.Hour), nil), LeakInput{}, LeakTag},
		{"another time zone", leaked(morning.Add(-time.Hour).In(time.FixedZone("", 7200)).Format(time.RFC3339), nil), LeakInput{}, LeakDelete},
		{"no birthday", leaked("", nil), LeakInput{}, LeakTag},
		{"empty birthday", leaked("", func(e *ENI) { e.Tags[TagCreatedAt] = "" }), LeakInput{}, LeakTag},
		{"senseless birthday", leaked("yesterday", nil), LeakInput{}, LeakTag},
		{"birthday in year 1", leaked("0001-01-01T00:00:00Z", nil), LeakInput{}, LeakTag},
		{"birthday as a number", leaked("1787000000", nil), LeakInput{}, LeakTag},
		{"in use", leaked(old, func(e *ENI) { e.Status = "in-use" }), LeakInput{}, LeakSkip},
		{"being created", leaked(old, func(e *ENI) { e.Status = "pending" }), LeakInput{}, LeakSkip},
		{"being attached", leaked(old, func(e *ENI) { e.AttachmentStatus = "attaching" }), LeakInput{}, LeakSkip},
		{"attached, says the attachment", leaked(old, func(e *ENI) { e.AttachmentID = "eni-attach-1" }), LeakInput{}, LeakSkip},
		{"of another program", leaked(old, func(e *ENI) { e.Description = "ELB app/shop" }), LeakInput{}, LeakSkip},
		{"described like ours, by another program", leaked(old, func(e *ENI) { delete(e.Tags, TagInstanceID) }), LeakInput{}, LeakSkip},
		{"hands off", leaked(old, func(e *ENI) { e.Tags[TagNoManage] = "true" }), LeakInput{}, LeakSkip},
		{"our own, at work", leaked(old, nil), LeakInput{Busy: []ipam.ENIID{"eni-0", "eni-1"}}, LeakSkip},
		{"our own, not at work", leaked(old, nil), LeakInput{Busy: []ipam.ENIID{"eni-0"}}, LeakDelete},
		{"nothing known", ENI{}, LeakInput{}, LeakSkip},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			row.in.Now = morning
			got := Leaked([]ENI{row.eni}, row.in)
			if len(got) != 1 || got[0].ENI != row.eni.ID || got[0].Action != row.want || got[0].Reason == "" {
				t.Errorf("%+v, want action %d", got, row.want)
			}
		})
	}
}

// FuzzLeaked: only a plausible creation time lets an ENI be deleted; any other tag is
// rewritten to one that does after LeakMinAge.
func FuzzLeaked(f *testing.F) {
	for _, s := range []string{"", "yesterday", "2026-08-21T08:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59+23:59", "2026-08-21"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, created string) {
		e := leaked(created, nil)
		switch v := Leaked([]ENI{e}, LeakInput{Now: morning})[0]; v.Action {
		case LeakDelete:
			born, err := time.Parse(time.RFC3339, created)
			if err != nil || morning.Sub(born) < LeakMinAge || born.Year() < 2000 {
				t.Errorf("%q: %+v", created, v)
			}
		case LeakTag:
			e.Tags[TagCreatedAt] = morning.Format(time.RFC3339)
			if v := Leaked([]ENI{e}, LeakInput{Now: morning.Add(LeakMinAge)})[0]; v.Action != LeakDelete {
				t.Errorf("%q written anew: %+v", created, v)
			}
		}
	})
}

func TestNextSweep(t *testing.T) {
	t.Parallel()
	rows := []struct {
		jitter    time.Duration
		lastEnded time.Time
		want      time.Duration // after now
	}{
		{0, time.Time{}, 0},
		{299 * time.Second, time.Time{}, 299 * time.Second},
		{SweepJitter, time.Time{}, SweepJitter - 1},
		{-time.Second, time.Time{}, 0},
		{0, morning, time.Hour},
		{10 * time.Second, morning.Add(-20 * time.Minute), 40*time.Minute + 10*time.Second},
		{0, morning.Add(-2 * time.Hour), 0},        // overdue: due at once
		{0, morning.Add(9 * time.Hour), time.Hour}, // the clock was set back
	}
	for _, row := range rows {
		if got := NextSweep(morning, row.jitter, row.lastEnded).Sub(morning); got != row.want {
			t.Errorf("NextSweep(%v, %v) = %v, want %v", row.jitter, row.lastEnded, got, row.want)
		}
	}
}
