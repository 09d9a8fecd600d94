package keeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
)

// detachENI detaches an ENI from the instance and returns when its slot is free. It fails if
// the kernel still routes an address of its CIDRs to a pod. The caller then deletes the ENI
// with [deleteENI].
func detachENI(ctx context.Context, c Calls, a resync.Attached) error {
	eni, attachment := a.ENI, a.AttachmentID
	if err := unrouted(ctx, c, a.CIDRs); err != nil {
		return fmt.Errorf("detach ENI %s: %w", eni.ID, err)
	}
	ending := false
	if attachment == "" {
		found, err := c.DescribeENIs(ctx, []ipam.ENIID{eni.ID})
		switch {
		case err != nil:
			return fmt.Errorf("%w of ENI %s: %w", ErrFindAttachment, eni.ID, err)
		case len(found) == 1:
			attachment, ending = found[0].AttachmentID, found[0].AttachmentStatus == resync.AttachmentDetaching
		}
	}
	if attachment != "" {
		var err error
		if !ending {
			err = c.DetachENI(ctx, attachment)
		}
		if CauseOf(err) == cause.EC2Unauthorized {
			return fmt.Errorf("%w %s: %w", ErrDetach, eni.ID, err)
		}
		// After any other error EC2 may still have accepted the detach: the client repeats a request
		// whose answer was lost, and this is the answer to the last attempt.
		if IsNotFound(err) {
			err = detachOther(ctx, c, eni.ID, attachment)
		}
		if err := untilDetached(ctx, c, eni.ID, !eni.AttachedAt.IsZero(), err); err != nil {
			return err
		}
	}
	tearDownENI(ctx, c, eni)
	return nil
}

// detachOther detaches an ENI's current attachment if it is not the one named by said. It does
// nothing if there is none.
func detachOther(ctx context.Context, c Calls, id ipam.ENIID, said string) error {
	found, err := c.DescribeENIs(ctx, []ipam.ENIID{id})
	if err != nil || len(found) == 0 || found[0].AttachmentID == "" || found[0].AttachmentID == said {
		return err
	}
	if err := c.DetachENI(ctx, found[0].AttachmentID); !IsNotFound(err) {
		return err
	}
	return nil
}

// awaitDetached waits for the end of an attachment that is already being detached. It fails
// only when the procedure must end first.
func awaitDetached(ctx context.Context, c Calls, eni ipam.ENI) error {
	if err := untilDetached(ctx, c, eni.ID, true, nil); err != nil {
		return err
	}
	tearDownENI(ctx, c, eni)
	return nil
}

// RulesKept is the note about rules that could not be removed.
const RulesKept Note = "rules of a detached ENI not removed"

// tearDownENI removes the rules of a detached ENI. The next start removes any leftover rule.
func tearDownENI(ctx context.Context, c Calls, eni ipam.ENI) {
	if err := c.TeardownENI(ctx, eni.PrimaryIP); err != nil {
		note(c, RulesKept, eni.ID, err)
	}
}

// untilDetached waits until EC2 shows the ENI unattached. A detach cannot be undone, so only
// the end of the procedure ends the wait, unless the request failed and EC2 shows that it was
// not accepted. If EC2's lists have never shown the ENI attached (its attach failed a moment
// ago), a list that does not show it attached may be outdated.
func untilDetached(ctx context.Context, c Calls, id ipam.ENIID, shown bool, failed error) error {
	var clock BackoffTimer
	believe := c.Now().Add(listRest)
	for {
		found, err := c.DescribeENIs(ctx, []ipam.ENIID{id})
		switch {
		case err != nil:
			note(c, "state of a detaching ENI not read", id, err)
		case len(found) == 0 || !found[0].Attached() || found[0].Status == resync.StatusAvailable:
			if shown || !c.Now().Before(believe) {
				return nil
			}
		case failed != nil && found[0].AttachmentStatus == resync.AttachmentAttached && !c.Now().Before(believe):
			return fmt.Errorf("%w %s: %w", ErrDetach, id, failed)
		default:
			shown = true
		}
		if err := pause(ctx, c, &clock, detachPollFirst, ThrottleMax); err != nil {
			return fmt.Errorf("%w %s: %w", ErrDetach, id, err)
		}
	}
}

// deleteENI deletes an ENI once it is not attached. It continues after the procedure should
// have ended, as long as the process's grace period allows: a forgotten ENI would leak.
func deleteENI(ctx context.Context, c Calls, id ipam.ENIID) error {
	lasting, done := c.Lasting(ctx, DeleteRetryLimit)
	defer done()
	limit := c.Now().Add(DeleteRetryLimit)
	var clock BackoffTimer
	noted := false
	for {
		err := deleteAvailable(lasting, c, id)
		if err == nil {
			return nil
		}
		// The role has to change for the next try to succeed, so this is noted at once.
		first := detachPollFirst
		if CauseOf(err) == cause.EC2Unauthorized {
			first = refusedFirst
			if !noted {
				noted = true
				note(c, DeleteRefused, id, err)
			}
		}
		if !c.Now().Before(limit) || pause(ctx, c, &clock, first, ThrottleMax) != nil {
			return fmt.Errorf("delete ENI %s: %w", id, err)
		}
	}
}

// refusedFirst is roughly how soon a deletion is retried for which the role lacks permission:
// people are slower than clocks.
const refusedFirst = 5 * time.Second

// DeleteRefused is the note about a deletion for which the role lacks permission.
const DeleteRefused Note = "ENI not deleted yet: missing permission"

var errStillAttached = errors.New("still attached")

func deleteAvailable(ctx context.Context, c Calls, id ipam.ENIID) error {
	found, err := c.DescribeENIs(ctx, []ipam.ENIID{id})
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		// Gone, or so new that the list lacks it. Deleting one that is gone is success.
	case found[0].Status != resync.StatusAvailable:
		return fmt.Errorf("%w (%s)", errStillAttached, found[0].Status)
	}
	return c.DeleteENI(ctx, id)
}
