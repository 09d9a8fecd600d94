package vpcrc

import (
	"testing"
	"time"
)

func named(ids ...string) []branch {
	var out []branch
	for _, id := range ids {
		out = append(out, branch{ENI: id})
	}
	return out
}

func wantNext(t *testing.T, q *queue, now time.Time, want string) parked {
	t.Helper()
	p, due := q.next(now, time.Minute)
	if p.ENI != want || due != (want != "") {
		t.Errorf("next is %q, %t; want %q", p.ENI, due, want)
	}
	return p
}

func TestQueue_CoolsDownInOrder(t *testing.T) {
	t.Parallel()
	var q queue
	start := time.Unix(0, 0)
	q.park(start, named("a", "b"))
	q.park(start.Add(30*time.Second), named("c"))
	wantNext(t, &q, start.Add(59*time.Second), "")
	wantNext(t, &q, start.Add(time.Minute), "a")
	wantNext(t, &q, start.Add(time.Minute), "b")
	wantNext(t, &q, start.Add(89*time.Second), "")
	wantNext(t, &q, start.Add(90*time.Second), "c")
	wantNext(t, &q, start.Add(time.Hour), "")
}

func TestQueue_WhatNoPodUsedDoesNotCoolDown(t *testing.T) {
	t.Parallel()
	var q queue
	start := time.Unix(0, 0)
	q.park(start, named("a"))
	q.discard(named("x", "y"))
	wantNext(t, &q, start, "x")
	wantNext(t, &q, start, "y")
	wantNext(t, &q, start, "")
}

func TestQueue_ForgetsAfterThreeRounds(t *testing.T) {
	t.Parallel()
	var q queue
	start := time.Unix(0, 0)
	q.park(start, named("a", "b"))
	now := start.Add(time.Minute)
	for round, forgotten := range []bool{false, false, true} {
		p := wantNext(t, &q, now, "a")
		if got := q.failed(p); got != forgotten {
			t.Errorf("round %d: forgotten: %t", round+1, got)
		}
	}
	wantNext(t, &q, now, "b")
}
