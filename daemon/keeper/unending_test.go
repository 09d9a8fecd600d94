package keeper

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

// second is the ENI that the bench's pool grows by, as EC2 describes it.
func second(end bool) resync.ENI {
	return resync.ENI{
		ID: "eni-second", Status: "in-use", Device: 1, SubnetID: testSubnet, InstanceID: "i-0123456789abcdef0", DeleteOnTermination: end,
		Description: resync.DescriptionPrefix + "i-0123456789abcdef0", Tags: map[string]string{resync.TagInstanceID: "i-0123456789abcdef0"},
		AttachmentID: "eni-attach-2", AttachmentStatus: resync.AttachmentAttached, PrimaryIP: secondary(9)[8].Addr(),
	}
}

// grow makes the pool attach an ENI with one address, and reports it set up.
func (b *bench) grow() {
	b.t.Helper()
	op, ok := lastOp(b, warmpool.PendingAttach)
	if !ok {
		b.t.Fatal("no ENI is attached")
	}
	b.send(AttachDone{ID: op.ID, ENI: ipam.ENI{
		ID: "eni-second", Device: 1, SubnetID: testSubnet, PrimaryIP: second(false).PrimaryIP, RouteTable: 2,
	}, Attachment: "eni-attach-2", Attached: true, CIDRs: secondary(8)[7:]})
}

// TestUnending_PodsDoNotWait: an ENI gives addresses as soon as it is set up, whatever becomes
// of its delete-on-termination, which is tried until EC2 sets it.
func TestUnending_PodsDoNotWait(t *testing.T) {
	t.Parallel()
	for name, failures := range map[string][]error{
		"set at once":   nil,
		"throttled":     {failed(cause.EC2Throttled), failed(cause.EC2Throttled), failed(cause.EC2Throttled), failed(cause.EC2Throttled), failed(cause.EC2Throttled)},
		"not answered":  {unanswered(), unanswered()},
		"refused":       {failed(cause.EC2Unauthorized), failed(cause.EC2Unauthorized), failed(cause.EC2Unauthorized)},
		"not known yet": {notFound()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.give(1)
			b.placed("first")
			a := b.add("second", 10*time.Second)
			b.send(a.Add)
			b.grow()
			b.write(nil)
			if r := a.got(t); !r.Success {
				t.Fatalf("ADD: %+v", r)
			}
			m := newModel(t)
			e := second(false)
			m.enis[e.ID], m.fail["modify"] = &e, failures
			tried, limit := 0, b.clock.Add(time.Hour)
			for ; !e.DeleteOnTermination; b.pass(time.Second) {
				if b.clock.After(limit) {
					t.Fatalf("never set; tried %d times", tried)
				}
				tasks := all[EndWithInstanceTask](b)
				if len(tasks) == tried {
					continue
				}
				if tried++; !maps.Equal(tasks[tried-1].Attachments, map[ipam.ENIID]string{e.ID: "eni-attach-2"}) {
					t.Fatalf("tries %v", tasks[tried-1].Attachments)
				}
				if Urgent(tasks[tried-1]) || Grows(tasks[tried-1]) {
					t.Error("it takes precedence over what pods wait for")
				}
				var done EndWithInstanceDone
				m.posted = func(msg Message) {
					if msg, ok := msg.(EndWithInstanceDone); ok {
						done = msg
					}
				}
				Run(t.Context(), m, tasks[tried-1])
				b.send(done)
			}
			if tried != len(failures)+1 {
				t.Errorf("tried %d times, want %d", tried, len(failures)+1)
			}
			var got, want []ENIMayOutlive // an answer that the attachment is not known yet is not told
			for i, err := range failures {
				if !IsNotFound(err) {
					want = append(want, ENIMayOutlive{ENI: e.ID, Err: err, Again: i > 0})
				}
			}
			for _, e := range b.events {
				if e, ok := e.(ENIMayOutlive); ok {
					got = append(got, e)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("told %v, want %v", got, want)
			}
			b.pass(time.Hour)
			if n := count[EndWithInstanceTask](b); n != tried {
				t.Errorf("tried %d times more", n-tried)
			}
		})
	}
}

// TestUnending_ToldOncePerCause: a cause that did not change is not news, until EC2 sets what is missing.
func TestUnending_ToldOncePerCause(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.give(9)
	b.placed("first")
	b.grow()
	for i, step := range []struct {
		err   error // nil: EC2 sets it
		told  bool
		again bool
	}{
		{failed(cause.EC2Throttled), true, false},
		{failed(cause.EC2Throttled), true, true},
		{failed(cause.EC2Unauthorized), true, false},
		{notFound(), false, false},
		{failed(cause.EC2Unauthorized), true, true},
		{nil, false, false},
		{failed(cause.EC2Unauthorized), true, false},
	} {
		b.events = nil
		done := EndWithInstanceDone{Failed: "eni-second", Err: step.err}
		if step.err == nil {
			done.ENIs, done.Failed = []ipam.ENIID{"eni-second"}, ""
		}
		b.send(done)
		told, again := false, false
		for _, e := range b.events {
			if e, ok := e.(ENIMayOutlive); ok {
				told, again = true, e.Again
			}
		}
		if told != step.told || again != step.again {
			t.Errorf("step %d, %v: told %v, again %v; want %v, %v", i, step.err, told, again, step.told, step.again)
		}
	}
}

// TestUnending_TellsTheFailure: of several failures of a pass, an answer that an ENI is not known
// yet hides no other.
func TestUnending_TellsTheFailure(t *testing.T) {
	t.Parallel()
	m := newModel(t)
	refused := failed(cause.EC2Error)
	m.fail["modify"] = []error{notFound(), refused, notFound()}
	var done EndWithInstanceDone
	m.posted = func(msg Message) { done, _ = msg.(EndWithInstanceDone) }
	Run(t.Context(), m, EndWithInstanceTask{Attachments: map[ipam.ENIID]string{"eni-1": "a-1", "eni-2": "a-2", "eni-3": "a-3"}})
	if done.Failed != "eni-2" || !errors.Is(done.Err, refused) {
		t.Errorf("told %+v", done)
	}
}

// TestUnending_Found: what a daemon that died did not set is found by the next one, at its start or
// when EC2 is read; what others attached is left alone.
func TestUnending_Found(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		change func(e *resync.ENI)
		want   bool
	}{
		{"left by a daemon that died", func(*resync.ENI) {}, true},
		{"still attaching", func(e *resync.ENI) { e.AttachmentStatus = "attaching" }, true},
		{"set", func(e *resync.ENI) { e.DeleteOnTermination = true }, false},
		{"made by others, who want to keep it", func(e *resync.ENI) { e.Description = "spare" }, false},
		{"a trunk", func(e *resync.ENI) { e.InterfaceType = "trunk" }, false},
		{"leaving", func(e *resync.ENI) { e.AttachmentStatus = resync.AttachmentDetaching }, false},
		{"of another instance's daemon", func(e *resync.ENI) { e.Tags = map[string]string{resync.TagInstanceID: "i-0fedcba9876543210"} }, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.give(7)
			e := second(false)
			row.change(&e)
			b.apply(b.clock, ipam.AttachENI{ENI: ipam.ENI{ID: e.ID, Device: 1, SubnetID: testSubnet, PrimaryIP: e.PrimaryIP, RouteTable: 2}})
			f, enis := attachedView(secondary(7))
			b.recon.needEC2, b.recon.askedEC2 = true, time.Time{}
			b.observe()
			b.send(Observed{AskedMetadata: true, Interfaces: f, AskedEC2: true, ENIs: append(enis, e), Links: []string{"lo"}})
			if n := count[EndWithInstanceTask](b); n > 1 || n == 1 != row.want {
				t.Errorf("%d tasks, want one: %v", n, row.want)
			}
		})
	}
}

// TestUnending_OldList: EC2's list may be older than what was set.
func TestUnending_OldList(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.give(9)
	b.placed("first")
	b.grow()
	b.send(EndWithInstanceDone{ENIs: []ipam.ENIID{"eni-second"}})
	look := func() {
		f, enis := attachedView(secondary(9))
		b.recon.needEC2, b.recon.askedEC2 = true, time.Time{}
		b.observe()
		b.send(Observed{AskedMetadata: true, Interfaces: f, AskedEC2: true, ENIs: append(enis, second(false)), Links: []string{link("first"), "lo"}})
	}
	look()
	if n := count[EndWithInstanceTask](b); n != 1 {
		t.Errorf("%d tasks after a list that may be older, want the first one", n)
	}
	b.pass(2 * writeSettle)
	look()
	if n := count[EndWithInstanceTask](b); n != 2 {
		t.Errorf("%d tasks after a later list, want two", n)
	}
}

// TestUnending_Leaves: an ENI that leaves, or never was ready, is forgotten.
func TestUnending_Leaves(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.give(9)
	b.placed("first")
	op := b.only()
	eni := ipam.ENI{ID: "eni-second", Device: 1, SubnetID: testSubnet, RouteTable: 2}
	b.send(AttachDone{ID: op.ID, ENI: eni, Attachment: "eni-attach-2", Attached: true, Err: failed(cause.ENILinkMissing)})
	if n := count[EndWithInstanceTask](b); n != 0 || len(b.unending.enis) != 1 {
		t.Errorf("%d tasks for an ENI that is being detached, %d noted", n, len(b.unending.enis))
	}
	b.unending.told = cause.EC2Error
	b.send(Gone{eni})
	if len(b.unending.enis) != 0 || b.unending.told != "" {
		t.Errorf("not forgotten: %v, %q", b.unending.enis, b.unending.told)
	}
}
