package procedure

import (
	"errors"
	"fmt"

	"cnictl/daemon/backoff"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
)

// Detach takes an ENI off the instance and returns when its slot is free. The ENI is
// then the caller's to [Delete].
func Detach(c Calls, eni ipam.ENI, attachment string) error {
	return detach(c, eni, attachment)
}

func detach(c Calls, eni ipam.ENI, attachment string) error {
	if attachment == "" {
		found, err := c.DescribeENIs([]ipam.ENIID{eni.ID})
		switch {
		case err != nil:
			return fmt.Errorf("find attachment of ENI %s: %w", eni.ID, err)
		case len(found) == 1:
			attachment = found[0].AttachmentID
		}
	}
	if attachment != "" {
		err := c.DetachENI(attachment)
		if err != nil && !IsNotFound(err) && !IsUnanswered(err) {
			return fmt.Errorf("detach ENI %s: %w", eni.ID, err)
		}
		if err := untilDetached(c, eni.ID, IsUnanswered(err)); err != nil {
			return err
		}
	}
	if err := c.TearDownENI(eni.PrimaryIP); err != nil {
		// The ENI is gone; a leftover rule is repaired by the next start.
		c.Warn("rules of a detached ENI not removed", eni.ID, err)
	}
	return nil
}

var errDetachRefused = errors.New("EC2 did not take the detach")

// untilDetached waits until EC2 shows the ENI attached nowhere. The detach cannot be
// taken back, so nothing but the end of the procedure ends the wait, unless it is in
// doubt that EC2 took it.
func untilDetached(c Calls, id ipam.ENIID, doubtful bool) error {
	var clock backoff.Clock
	for {
		found, err := c.DescribeENIs([]ipam.ENIID{id})
		switch {
		case err != nil:
			c.Warn("state of a detaching ENI not read", id, err)
		case len(found) == 0 || found[0].AttachmentID == "" || found[0].Status == resync.StatusAvailable:
			return nil
		case doubtful && found[0].AttachmentStatus == resync.AttachmentAttached:
			return &Failure{Err: fmt.Errorf("detach ENI %s: %w", id, errDetachRefused), Unanswered: true}
		}
		if err := pause(c, &clock, detachPollFirst, backoff.ThrottleMost); err != nil {
			return fmt.Errorf("detach ENI %s: %w", id, err)
		}
	}
}

// Delete deletes an ENI as soon as it is attached nowhere. It goes on when the
// procedure should have ended, as far as the process's grace goes: a forgotten ENI
// would leak.
func Delete(c Calls, id ipam.ENIID) error {
	lasting, done := c.Lasting(DeleteRetryLimit)
	defer done()
	limit := c.Now().Add(DeleteRetryLimit)
	var clock backoff.Clock
	for {
		err := deleteAvailable(lasting, id)
		if err == nil {
			return nil
		}
		if !c.Now().Before(limit) || pause(c, &clock, detachPollFirst, backoff.ThrottleMost) != nil {
			return fmt.Errorf("delete ENI %s: %w", id, err)
		}
	}
}

var errStillAttached = errors.New("still attached")

func deleteAvailable(c Calls, id ipam.ENIID) error {
	found, err := c.DescribeENIs([]ipam.ENIID{id})
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return nil
	case found[0].Status != resync.StatusAvailable:
		return fmt.Errorf("%w (%s)", errStillAttached, found[0].Status)
	}
	return c.DeleteENI(id)
}
