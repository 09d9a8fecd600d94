package ipamd

import (
	"testing"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/config"
	"cnictl/daemon/ipam"
	"cnictl/daemon/keeper"
	"cnictl/daemon/notice"
)

// TestNotices_PodUID: the event of a new pod with the same name is not suppressed as a
// repetition, and a static pod's event refers to its mirror pod.
func TestNotices_PodUID(t *testing.T) {
	t.Parallel()
	const first, second, static = "6f1c0d5e-0000-4000-8000-000000000001", "6f1c0d5e-0000-4000-8000-000000000002", "0123456789abcdef0123456789abcdef"
	limiter, now := notice.NewLimiter(notice.DefaultPolicy()), time.Now()
	for _, row := range []struct {
		uid, want string
		sent      bool
	}{{first, first, true}, {first, first, false}, {second, second, true}, {static, "", true}, {"", "", false}} {
		e := addFailed(keeper.AddFailed{Pod: ipam.Pod{Namespace: "shop", Name: "web-0"}, PodUID: row.uid, Cause: cause.PoolDry}).notice
		if e.About.UID != row.want {
			t.Fatalf("%q: %+v", row.uid, e)
		}
		if _, sent := limiter.Allow(now, e); sent != row.sent {
			t.Errorf("%q: sent %v", row.uid, sent)
		}
	}
}

// heard records a keeper's events.
type heard struct {
	keeper.Outside
	events []keeper.Event
}

func (o *heard) Record(_ time.Time, e keeper.Event) { o.events = append(o.events, e) }

// TestAddFailed_PodUID: a failed ADD reports the UID from the runtime, whoever answers.
func TestAddFailed_PodUID(t *testing.T) {
	t.Parallel()
	o := &heard{}
	k := keeper.New(keeper.Options{Outside: o, Now: time.Now()})
	req := &cniwire.AddRequest{PodName: "web-0", PodNamespace: "shop", PodUID: "u-1"} // without a sandbox
	k.Handle(time.Now(), &keeper.Add{Request: req, Reply: func(*cniwire.AddReply) {}})

	a := newAsked(t, config.Config{AnnotatePodIP: true}, nil)
	a.failPod(req, cause.PodUnknown, textNoPod, errOlderPod, 0)
	k.Handle(time.Now(), take[keeper.BranchFailed](a))
	(&branches{owner: a.owner, log: a.log}).fail(req, &branchError{cause.BranchPending, textNoBranch, errOlderPod}, 0)
	k.Handle(time.Now(), take[keeper.BranchFailed](a))
	if len(o.events) != 3 {
		t.Fatalf("%+v", o.events)
	}
	for _, e := range o.events {
		if failed, ok := e.(keeper.AddFailed); !ok || failed.PodUID != req.PodUID {
			t.Errorf("%+v", e)
		}
	}
}
