package keeper

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
	"cnictl/daemon/warmpool"
)

var attachOp = Operation{
	Pending: warmpool.Pending{Kind: warmpool.PendingAttach, Device: 1, SubnetID: "subnet-1"},
	create:  CreateENI{SubnetID: "subnet-1", IPs: 3, Token: "node-1"},
}

func attachPlanned(m *model) AttachDone { return attachENI(m.t.Context(), m, attachOp) }

func assignOp(eni ipam.ENIID, ips int) Operation {
	return Operation{Pending: warmpool.Pending{Kind: warmpool.PendingAssign, ENI: eni, IPs: ips}}
}

func TestAttach(t *testing.T) {
	t.Parallel()
	m := newModel(t)
	res := attachPlanned(m)
	if res.Err != nil || len(res.CIDRs) != 3 || res.ENI.ID != "eni-1" || res.Attachment != "eni-attach-eni-1" {
		t.Errorf("%+v", res)
	}
	if want := "create (created) attach (attached) set up"; strings.Join(m.calls, " ") != want {
		t.Errorf("calls: %v, want %s", m.calls, want)
	}
}

// TestAttach_WhatGoesWrong checks, for each call that fails, that there is one ENI or none,
// and that the result says which.
func TestAttach_WhatGoesWrong(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		before func(m *model)
		works  bool
		kept   bool // attached despite the failure
		enis   int
		cause  cause.Code
	}{
		{name: "create fails", before: func(m *model) {
			m.fail["create"] = []error{failed(cause.SubnetExhausted), failed(cause.SubnetExhausted)}
		}, cause: cause.SubnetExhausted},
		{name: "the subnet has less", before: func(m *model) { m.fail["create"] = []error{failed(cause.SubnetFragmented)} }, works: true, enis: 1},
		{name: "create without effect or answer", before: func(m *model) { m.fail["create"] = []error{unanswered()} }, works: true, enis: 1},
		{name: "create with effect, without answer", before: func(m *model) { m.fail["create"], m.lost["create"] = []error{unanswered(), unanswered()}, true }, works: true, enis: 1},
		{name: "attach throttled", before: func(m *model) {
			m.fail["attach"] = []error{failed(cause.EC2Throttled), failed(cause.EC2Throttled), failed(cause.EC2Throttled)}
		}, works: true, enis: 1},
		{name: "attach without effect or answer", before: func(m *model) { m.fail["attach"] = []error{unanswered()} }, works: true, enis: 1},
		{name: "attach with effect, without answer", before: func(m *model) { m.fail["attach"], m.lost["attach"] = []error{unanswered()}, true }, works: true, enis: 1},
		{name: "attach with effect, the client's repetition refused", before: func(m *model) {
			m.fail["attach"], m.lost["attach"] = []error{failed(cause.EC2Error)}, true
		}, works: true, enis: 1},
		{name: "attach refused", before: func(m *model) { m.fail["attach"] = []error{failed(cause.ENIAttachLimit)} }, enis: 1, cause: cause.ENIAttachLimit},
		{name: "no link", before: func(m *model) { m.setUp = failed(cause.ENILinkMissing) }, kept: true, enis: 1, cause: cause.ENILinkMissing},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			m := newModel(t)
			row.before(m)
			res := attachPlanned(m)
			if (res.Err == nil) != row.works || res.Attached != (row.works || row.kept) || len(m.enis) != row.enis || CauseOf(res.Err) != row.cause {
				t.Errorf("%+v\nENIs %v, want %d; cause %q", res, m.enis, row.enis, CauseOf(res.Err))
			}
			if (res.ENI.ID != "") != (row.enis > 0) {
				t.Errorf("result names %q, there are %d ENIs", res.ENI.ID, len(m.enis))
			}
			if res.Err != nil && !res.Attached && res.ENI.ID != "" && m.enis[res.ENI.ID].Status != resync.StatusAvailable {
				t.Errorf("to be deleted, and still %s", m.enis[res.ENI.ID].Status)
			}
		})
	}
}

// TestAttach_GivesUp at the process's end, and at its own limit.
func TestAttach_GivesUp(t *testing.T) {
	t.Parallel()
	for _, end := range []time.Duration{time.Second, 0} {
		m := newModel(t)
		if end > 0 {
			m.end = m.now.Add(end)
		}
		for range 1000 {
			m.fail["attach"] = append(m.fail["attach"], failed(cause.EC2Throttled))
		}
		begin := m.now
		if res := attachPlanned(m); !IsThrottled(res.Err) {
			t.Errorf("%+v", res)
		}
		if took := m.now.Sub(begin); took > AttachRetryLimit+time.Minute {
			t.Errorf("took %v", took)
		}
	}
}

func attached(m *model) ipam.ENI {
	res := attachPlanned(m)
	m.calls = nil
	return res.ENI
}

func TestAssign(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name      string
		before    func(m *model)
		cidrs     int
		all, full bool
		works     bool
	}{
		{name: "works", cidrs: 2, works: true},
		{name: "full", before: func(m *model) {
			m.fail["assign"] = []error{&Failure{AddressLimit: true, Err: errors.New("limit")}}
		}, cidrs: 3, all: true, full: true, works: true},
		{name: "with effect, without answer", before: func(m *model) { m.fail["assign"], m.lost["assign"] = []error{unanswered()}, true }, cidrs: 5, all: true},
		{name: "EC2 does not answer", before: func(m *model) {
			m.fail["assign"], m.fail["describe"] = []error{unanswered()}, []error{unanswered()}
		}},
		{name: "the subnet has less", before: func(m *model) { m.fail["assign"] = []error{failed(cause.SubnetFragmented)} }, cidrs: 1, works: true},
		{name: "the subnet has nothing", before: func(m *model) {
			m.fail["assign"] = []error{failed(cause.SubnetExhausted), failed(cause.SubnetExhausted)}
		}},
		{name: "refused", before: func(m *model) { m.fail["assign"] = []error{failed(cause.EC2Unauthorized)} }},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			m := newModel(t)
			eni := attached(m)
			if row.before != nil {
				row.before(m)
			}
			res := assignAddresses(t.Context(), m, assignOp(eni.ID, 2))
			if len(res.CIDRs) != row.cidrs || res.All != row.all || res.Full != row.full || (res.Err == nil) != row.works {
				t.Errorf("%+v", res)
			}
		})
	}
}

// TestFewer: EC2 assigns either everything requested or nothing. After each refusal for lack
// of addresses half as many are requested, even while EC2 throttles.
func TestFewer(t *testing.T) {
	t.Parallel()
	throttled := failed(cause.EC2Throttled)
	for _, row := range []struct {
		name       string
		want, most int
		fail       []error // of the requests, in order
		asked      []int
		got        int
	}{
		{name: "enough", want: 9, asked: []int{9}, got: 9},
		{name: "half", want: 9, most: 4, asked: []int{9, 4}, got: 4},
		{name: "some", want: 29, most: 6, asked: []int{29, 14, 7, 3}, got: 3},
		{name: "one", want: 9, most: 1, asked: []int{9, 4, 2, 1}, got: 1},
		{name: "none", want: 9, most: -1, fail: slices.Repeat([]error{failed(cause.SubnetExhausted)}, 4)},
		{name: "throttled for a while", want: 9, most: 2, fail: []error{nil, throttled, throttled, nil, throttled}, asked: []int{9, 4, 2}, got: 2},
		{name: "throttled without end", want: 9, most: 2, fail: append([]error{nil}, slices.Repeat([]error{throttled}, 1000)...), asked: []int{9}},
	} {
		for way, run := range map[string]func(m *model) (int, error){
			"assign": func(m *model) (int, error) {
				m.enis["eni-1"] = &resync.ENI{ID: "eni-1"}
				res := assignAddresses(t.Context(), m, assignOp("eni-1", row.want))
				return len(res.CIDRs), res.Err
			},
			"create": func(m *model) (int, error) {
				op := attachOp
				op.create.IPs = row.want
				res := attachENI(t.Context(), m, op)
				return len(res.CIDRs), res.Err
			},
		} {
			t.Run(row.name+"/"+way, func(t *testing.T) {
				t.Parallel()
				m := newModel(t)
				m.most, m.fail[way] = row.most, slices.Clone(row.fail)
				got, err := run(m)
				if got != row.got || !slices.Equal(m.asked, row.asked) || (err == nil) != (row.got > 0) {
					t.Errorf("got %d, asked %v: %v; want %d, %v", got, m.asked, err, row.got, row.asked)
				}
				if err != nil && !IsSubnetExhausted(err) {
					t.Errorf("%v: want the subnet's answer", err)
				}
			})
		}
	}
}

func TestRelease(t *testing.T) {
	t.Parallel()
	two := []netip.Prefix{netip.MustParsePrefix("10.0.1.1/32"), netip.MustParsePrefix("10.0.1.2/32")}
	for _, row := range []struct {
		name   string
		before func(m *model)
		gone   int
		works  bool
		asked  int
	}{
		{name: "works", gone: 2, works: true, asked: 1},
		{name: "a pod lives there", before: func(m *model) {
			m.routes = []resync.PodRoute{{Address: two[1].Addr(), HostLink: "eni123"}}
		}},
		{name: "kernel unknown", before: func(m *model) { m.fail["routes"] = []error{errors.New("netlink")} }},
		{name: "refused", before: func(m *model) { m.fail["unassign"] = []error{failed(cause.EC2Throttled)} }, asked: 1},
		{name: "without effect or answer", before: func(m *model) { m.fail["unassign"] = []error{unanswered()} }, asked: 1},
		{name: "with effect, without answer", before: func(m *model) { m.fail["unassign"], m.lost["unassign"] = []error{unanswered()}, true }, gone: 2, asked: 1},
		{name: "with effect, the client's repetition refused", before: func(m *model) {
			m.fail["unassign"], m.lost["unassign"] = []error{failed(cause.EC2Error)}, true
		}, gone: 2, asked: 1},
		{name: "with effect, and EC2 silent for a while", before: func(m *model) {
			m.fail["unassign"], m.lost["unassign"] = []error{unanswered()}, true
			m.fail["describe"] = []error{unanswered(), unanswered(), unanswered()}
		}, gone: 2, asked: 1},
		{name: "partly", before: func(m *model) {
			m.fail["unassign"] = []error{&PartlyUnassigned{Gone: two[:1], Err: failed(cause.EC2Error)}}
		}, gone: 1, asked: 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			m := newModel(t)
			eni := attached(m)
			if row.before != nil {
				row.before(m)
			}
			res := releaseCIDRs(t.Context(), m, Operation{Pending: warmpool.Pending{Kind: warmpool.PendingRelease, ENI: eni.ID}, CIDRs: two})
			if len(res.Gone) != row.gone || (res.Err == nil) != row.works || m.count("unassign") != row.asked {
				t.Errorf("%+v after %v", res, m.calls)
			}
		})
	}
}

// TestDetach returns once the slot is free, however long that takes.
func TestDetach(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		before  func(m *model)
		works   bool
		settles time.Duration
	}{
		{name: "at once", works: true},
		{name: "slowly", works: true, settles: 10 * time.Minute},
		{name: "refused", before: func(m *model) { m.fail["detach"] = []error{failed(cause.EC2Unauthorized)} }},
		{name: "a pod lives there", before: func(m *model) {
			m.routes = []resync.PodRoute{{Address: netip.MustParseAddr("10.0.1.1"), HostLink: "eni123"}}
		}},
		{name: "kernel unknown", before: func(m *model) { m.fail["routes"] = []error{errors.New("netlink")} }},
		{name: "with effect, without answer", before: func(m *model) { m.fail["detach"], m.lost["detach"] = []error{unanswered()}, true }, works: true},
		{name: "with effect, the client's repetition refused", before: func(m *model) {
			m.fail["detach"], m.lost["detach"] = []error{failed(cause.EC2Error)}, true
		}, works: true},
		{name: "without effect or answer", before: func(m *model) { m.fail["detach"] = []error{unanswered()} }},
		{name: "another attachment than was said", before: func(m *model) { m.enis["eni-1"].AttachmentID = "eni-attach-other" }, works: true},
		{name: "another was quicker", before: func(m *model) { clear(m.enis) }, works: true},
		{name: "the process ends", before: func(m *model) { m.end = m.now.Add(time.Second) }, settles: time.Minute},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			m := newModel(t)
			eni := attached(m)
			if _, err := m.DescribeENIs(t.Context(), nil); err != nil { // the attach has settled
				t.Fatal(err)
			}
			m.settles = row.settles
			if row.before != nil {
				row.before(m)
			}
			err := detachENI(t.Context(), m, resync.Attached{ENI: eni, CIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.1.1/32")}, AttachmentID: "eni-attach-eni-1"})
			if (err == nil) != row.works {
				t.Errorf("error %v", err)
			}
			if e := m.enis[eni.ID]; row.works && e != nil && e.Status != resync.StatusAvailable {
				t.Errorf("returned while the slot is taken: %+v", e)
			}
			if torn := m.count("tear down") == 1; torn != row.works {
				t.Errorf("rules removed: %v, detached: %v", torn, row.works)
			}
		})
	}
}

// TestAttach_ListOlderThanTheFirstTry: EC2 accepted the attachment but answered with
// throttling, refuses the second try because the ENI is in use, and does not list it yet.
func TestAttach_ListOlderThanTheFirstTry(t *testing.T) {
	t.Parallel()
	m := newModel(t)
	m.fail["attach"], m.lost["attach"] = []error{failed(cause.EC2Throttled), failed(cause.EC2Error), failed(cause.EC2Error)}, true
	m.older = []resync.ENI{{ID: "eni-1", Status: resync.StatusAvailable}}
	if res := attachPlanned(m); res.Err != nil || !res.Attached {
		t.Errorf("%+v after %v, want the attachment of the first try", res, m.calls)
	}
}

// TestDetach_ListOlderThanTheAttach: the attach failed a moment ago, and EC2's list does not
// show the attachment yet. The slot is not free until the detach has ended.
func TestDetach_ListOlderThanTheAttach(t *testing.T) {
	t.Parallel()
	m := newModel(t)
	eni := attached(m)
	m.settles = 3 * time.Second
	m.older = []resync.ENI{{ID: eni.ID, Status: resync.StatusAvailable}}
	if err := detachENI(t.Context(), m, resync.Attached{ENI: eni, AttachmentID: "eni-attach-eni-1"}); err != nil {
		t.Fatal(err)
	}
	if e := m.enis[eni.ID]; e.Status != resync.StatusAvailable {
		t.Errorf("returned while the slot is taken: %+v", e)
	}
}

// TestDelete waits for the end of a detach, and survives temporary failures of EC2.
func TestDelete(t *testing.T) {
	t.Parallel()
	m := newModel(t)
	eni := attached(m)
	m.settles = 3 * time.Second
	if err := m.DetachENI(t.Context(), "eni-attach-eni-1"); err != nil {
		t.Fatal(err)
	}
	m.fail["describe"] = []error{unanswered(), failed(cause.EC2Throttled)}
	m.fail["delete"] = []error{failed(cause.EC2Throttled)}
	if err := deleteENI(t.Context(), m, eni.ID); err != nil || len(m.enis) != 0 {
		t.Errorf("error %v, left %v", err, m.enis)
	}
	if err := deleteENI(t.Context(), m, eni.ID); err != nil {
		t.Errorf("deleting what is gone: %v", err)
	}
}

func TestAdopt(t *testing.T) {
	t.Parallel()
	m := newModel(t)
	eni := attached(m)
	m.fail["set up"] = []error{failed(cause.ENILinkMissing), failed(cause.ENILinkMissing)}
	if adopted, ended := adoptENI(t.Context(), m, eni); !adopted || !ended {
		t.Error("not adopted, although its link came")
	}
	m.setUp = failed(cause.ENILinkMissing)
	clear(m.enis)
	if adopted, ended := adoptENI(t.Context(), m, eni); adopted || !ended {
		t.Error("an ENI that is gone was not given up")
	}
	m.enis[eni.ID] = &resync.ENI{ID: eni.ID, AttachmentID: "eni-attach-1"}
	m.end = m.now.Add(time.Second)
	if _, ended := adoptENI(t.Context(), m, eni); ended {
		t.Error("neither set up nor gone, and said to be ended")
	}
}

// TestSweepLeaked deletes leaked ENIs, tags those without a creation time, and continues
// after a failure.
func TestSweepLeaked(t *testing.T) {
	t.Parallel()
	m := newModel(t)
	for id, born := range map[ipam.ENIID]time.Duration{"eni-old": time.Hour, "eni-older": 2 * time.Hour, "eni-young": time.Minute, "eni-unborn": -1} {
		e := &resync.ENI{ID: id, Status: resync.StatusAvailable, Description: resync.DescriptionPrefix + "i-1", Tags: map[string]string{resync.TagInstanceID: "i-1"}}
		if born > 0 {
			e.Tags[resync.TagCreatedAt] = m.now.Add(-born).UTC().Format(time.RFC3339)
		}
		m.enis[id] = e
	}
	// A throttled deletion is retried at once, a refused one by the next sweep.
	m.fail["delete"] = []error{failed(cause.EC2Throttled), failed(cause.EC2Unauthorized)}
	res := sweepLeaked(t.Context(), m, resync.LeakInput{})
	if res.Found != 2 || res.Deleted != 1 || res.Err == nil {
		t.Errorf("%+v", res)
	}
	if _, young := m.enis["eni-young"]; !young || len(m.enis) != 3 || m.enis["eni-unborn"].Tags[resync.TagCreatedAt] == "" {
		t.Errorf("left: %v", m.enis)
	}
	if res := sweepLeaked(t.Context(), m, resync.LeakInput{}); res.Deleted != 1 || res.Err != nil || len(m.enis) != 2 {
		t.Errorf("the second time: %+v, left %v", res, m.enis)
	}
	if !slices.Contains(m.notes, LeakDeleted) {
		t.Errorf("notes: %v", m.notes)
	}
}

// TestTag: a throttled tagging is delayed by minutes once, because all nodes tag when they
// start. Then it is the next ENI's turn, and the end of the process ends the wait.
func TestTag(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		fail    []error
		asked   int // requests for two ENIs
		longest time.Duration
		notes   int
	}{
		{"served", nil, 2, 0, 0},
		{"throttled", []error{failed(cause.EC2Throttled)}, 3, 2 * time.Minute, 0},
		{"throttled again", []error{failed(cause.EC2Throttled), failed(cause.EC2Throttled)}, 4, 2*time.Minute + time.Second, 0},
		{"not answered", []error{unanswered()}, 3, time.Second, 0},
		{"refused", []error{failed(cause.EC2Unauthorized)}, 2, 0, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			m := newModel(t)
			m.fail["tag"] = row.fail
			began := m.now
			tagENIs(t.Context(), m, []resync.ENI{{ID: "eni-1"}, {ID: "eni-2"}})
			took := m.now.Sub(began)
			if n := m.count("tag"); n != row.asked || took > row.longest || took < row.longest-time.Second || len(m.notes) != row.notes {
				t.Errorf("asked %d times in %v, recorded %v", n, took, m.notes)
			}
		})
	}
	m := newModel(t)
	m.fail["tag"], m.end = []error{failed(cause.EC2Throttled)}, m.now.Add(time.Second)
	tagENIs(t.Context(), m, []resync.ENI{{ID: "eni-1"}})
	if n := m.count("tag"); n != 1 {
		t.Errorf("asked %d times though the process ends", n)
	}
}

func TestObserve(t *testing.T) {
	t.Parallel()
	m := newModel(t)
	attached(m)
	if v := observe(t.Context(), m, true, false); v.AskedEC2 || m.count("describe") != 0 || v.KernelErr != nil {
		t.Errorf("%+v", v)
	}
	m.fail["links"] = []error{errors.New("netlink")}
	if v := observe(t.Context(), m, true, true); !v.AskedEC2 || len(v.ENIs) != 1 || v.KernelErr == nil {
		t.Errorf("%+v", v)
	}
	if last := m.calls[len(m.calls)-1]; last != "links" {
		t.Errorf("the kernel is not read last: %v", m.calls)
	}
}

func TestDrop(t *testing.T) {
	t.Parallel()
	m := newModel(t)
	m.fail["drop"] = []error{errors.New("netlink")}
	gone := []ipam.Assignment{{Address: netip.MustParseAddr("10.0.1.1")}, {Address: netip.MustParseAddr("10.0.1.2")}}
	if done := dropPods(t.Context(), m, gone); len(done) != 1 || done[0].Address != gone[1].Address {
		t.Errorf("free: %v", done)
	}
}
