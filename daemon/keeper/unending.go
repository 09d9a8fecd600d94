package keeper

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
)

// unending makes EC2 delete the ENIs that the daemon attached with their instance. Pods do not
// wait for it: an ENI is in use as soon as its routes are set, and the call gives way to those
// that pods wait for. What is not done when the process ends is found by the next start.
type unending struct {
	enis    map[ipam.ENIID]string    // attached without delete-on-termination, with their attachments
	wrote   map[ipam.ENIID]time.Time // when it was set; a description may be older
	writing bool
	failed  BackoffTimer
	told    cause.Code // why it last failed, if it still does
}

func (u *unending) note(id ipam.ENIID, attachment string) {
	if u.enis == nil {
		u.enis = make(map[ipam.ENIID]string)
	}
	u.enis[id] = attachment
}

// noteUnending notes those of the daemon's ENIs that EC2 shows without delete-on-termination, in
// an answer that was requested at begun. What others attached without it may be meant to stay.
func (k *Keeper) noteUnending(ours []resync.ENI, begun time.Time) {
	maps.DeleteFunc(k.unending.wrote, func(_ ipam.ENIID, at time.Time) bool { return begun.Sub(at) >= writeSettle })
	for _, e := range ours {
		if _, done := k.unending.wrote[e.ID]; !done && e.AttachmentID != "" && e.AttachmentStatus != resync.AttachmentDetaching &&
			!e.DeleteOnTermination && e.ID != k.settings.PrimaryENI && !e.Trunk() && strings.HasPrefix(e.Description, resync.DescriptionPrefix) {
			k.unending.note(e.ID, e.AttachmentID)
		}
	}
}

// tagged returns the ENIs with the tag of an instance's daemon.
func tagged(all []resync.ENI, instance string) []resync.ENI {
	return slices.DeleteFunc(slices.Clone(all), func(e resync.ENI) bool { return e.Tags[resync.TagInstanceID] != instance })
}

// endWithInstance sets what is missing on the ENIs of the book, except on those about to go. Others
// are forgotten, unless they are being set up.
func (k *Keeper) endWithInstance(now time.Time) {
	u := &k.unending
	if len(u.enis) == 0 {
		u.told = ""
	}
	if len(u.enis) == 0 || u.writing || u.failed.Running(now) || !k.settings.Provisioning {
		return
	}
	due, coming := make(map[ipam.ENIID]string, len(u.enis)), make(map[ipam.ENIID]string)
	for id, attachment := range u.enis {
		if _, ok := k.recon.adopting[id]; ok {
			coming[id] = attachment
		}
	}
	for _, e := range k.book.Snapshot().ENIs {
		switch attachment, ok := u.enis[e.ID]; {
		case !ok:
		case e.Held || e.Quarantined():
			coming[e.ID] = attachment
		default:
			due[e.ID], coming[e.ID] = attachment, attachment
		}
	}
	u.enis = coming
	if len(due) > 0 {
		u.writing = true
		k.begin(EndWithInstanceTask{due})
	}
}

// EndWithInstanceTask sets delete-on-termination of attached ENIs.
type EndWithInstanceTask struct {
	Attachments map[ipam.ENIID]string
}

func (t EndWithInstanceTask) run(ctx context.Context, c Calls) {
	var done EndWithInstanceDone
	for _, id := range slices.Sorted(maps.Keys(t.Attachments)) {
		err := c.SetDeleteOnTermination(ctx, id, t.Attachments[id])
		if err == nil {
			done.ENIs = append(done.ENIs, id)
			continue
		}
		if done.Err == nil || IsNotFound(done.Err) {
			done.Failed, done.Err = id, err
		}
		if IsThrottled(err) || CauseOf(err) == cause.EC2Unauthorized {
			break // the rest would fail, too
		}
	}
	c.Post(done)
}

// EndWithInstanceDone reports the ENIs whose delete-on-termination was set.
type EndWithInstanceDone struct {
	ENIs   []ipam.ENIID
	Failed ipam.ENIID // the first one that failed
	Err    error
}

func (m EndWithInstanceDone) handle(k *Keeper, now time.Time) {
	u := &k.unending
	u.writing = false
	for _, id := range m.ENIs {
		delete(u.enis, id)
		if u.wrote == nil {
			u.wrote = make(map[ipam.ENIID]time.Time)
		}
		u.wrote[id] = now
	}
	if m.Err == nil {
		u.told = ""
		u.failed.Succeed(now)
		return
	}
	if code := CauseOf(m.Err); !IsNotFound(m.Err) { // an ENI that EC2 does not know yet, or any more
		k.record(now, ENIMayOutlive{ENI: m.Failed, Err: m.Err, Again: u.told == code})
		u.told = code
	}
	u.failed.Fail(now, now, CauseOf(m.Err), ThrottleFirst, refusedMost, k.jitter)
}
