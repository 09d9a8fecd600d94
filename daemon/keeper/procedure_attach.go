package keeper

import (
	"context"
	"fmt"
	"time"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
)

// Limits of single procedures. An EC2 attach is normally visible on the node within seconds;
// upstream waits up to 162 s for it.
const (
	// AttachRetryLimit is below resync.LeakMinAge: the sweep of another node deletes
	// unattached ENIs of that age.
	AttachRetryLimit = 4 * time.Minute
	DeleteRetryLimit = 5 * time.Minute
	createTries      = 4
	// detachPollFirst is when EC2 is first asked whether a detach has ended.
	detachPollFirst = 500 * time.Millisecond
)

// attachENI creates an ENI with its addresses, attaches it and puts its routes into the kernel. It reports a failure immediately; the caller then cleans up
// an ENI that was created, with [detachENI] if it is Attached, and with [deleteENI].
func attachENI(ctx context.Context, c Calls, op Operation) AttachDone {
	made, refused, err := createFewer(ctx, c, op.create)
	if err != nil {
		return AttachDone{ID: op.ID, Refused: refused, Err: fmt.Errorf("%w in %s: %w", ErrCreate, op.SubnetID, err)}
	}
	c.Post(ENICreated{op.ID, made.ID})
	res := AttachDone{ID: op.ID, Refused: refused, CIDRs: made.CIDRsOf(op.ipv6), ENI: ipam.ENI{
		ID: made.ID, MAC: made.MAC, Card: op.Card, Device: op.Device, SubnetID: op.SubnetID, Subnet: op.subnet,
		PrimaryIP: made.PrimaryOf(op.ipv6), RouteTable: netnames.RouteTable(op.Card, op.Device),
	}}
	res.Attachment, err = attachCreated(ctx, c, made.ID, op.Card, op.Device)
	for IsAddressLimit(err) && len(res.CIDRs) > 0 {
		if res.Refused = len(res.CIDRs); !halve(ctx, c, &res) {
			break
		}
		res.Attachment, err = attachCreated(ctx, c, made.ID, op.Card, op.Device)
	}
	if err != nil {
		res.Err = fmt.Errorf("attach ENI %s at device %d: %w", made.ID, op.Device, err)
		return res
	}
	c.Post(AttachAccepted{op.ID, made.ID})
	res.Attached = true
	res.Err = setUpENI(ctx, c, res.ENI)
	return res
}

// halve takes half of its addresses off a new ENI: the instance type takes ENIs with fewer than
// it should. It keeps at least one.
func halve(ctx context.Context, c Calls, res *AttachDone) bool {
	keep := len(res.CIDRs) / 2
	if keep == 0 {
		return false
	}
	if err := unthrottled(ctx, c, func() error { return c.Unassign(ctx, res.ENI.ID, res.CIDRs[keep:]) }); err != nil {
		return false
	}
	res.CIDRs = res.CIDRs[:keep]
	return true
}

// createFewer creates the ENI with as many of its addresses as the subnet has, or an ENI may
// have: like assignAddresses, it requests half as many each time, down to one. refused is how
// many were more than an ENI may have, 0 if that was not the reason.
func createFewer(ctx context.Context, c Calls, p CreateENI) (made resync.ENI, refused int, err error) {
	made, err = createENI(ctx, c, p)
	token := p.Token
	for p.IPs+p.Prefixes > 1 && (isShort(err) || IsAddressLimit(err)) {
		if IsAddressLimit(err) {
			refused = p.IPs + p.Prefixes
		}
		p.IPs, p.Prefixes = p.IPs/2, p.Prefixes/2
		p.Token = fmt.Sprintf("%s-%d", token, p.IPs+p.Prefixes) // it is a different request
		var less resync.ENI
		lessErr := unthrottled(ctx, c, func() (err error) {
			less, err = createENI(ctx, c, p)
			return err
		})
		if IsThrottled(lessErr) {
			break // EC2's first answer is more informative
		}
		made, err = less, lessErr
	}
	return made, refused, err
}

// createENI creates the ENI. If the answer is lost it repeats the request under the same
// token, or the ENI that EC2 may have created would leak.
func createENI(ctx context.Context, c Calls, spec CreateENI) (resync.ENI, error) {
	spec.CreatedAt = c.Now()
	var clock BackoffTimer
	for try := 1; ; try++ {
		eni, err := c.CreateENI(ctx, spec)
		if err == nil || !IsUnanswered(err) || try == createTries {
			return eni, err
		}
		if pause(ctx, c, &clock, ThrottleFirst, ThrottleMax) != nil {
			return eni, err
		}
	}
}

// attachCreated starts the attachment. When throttled, it keeps the ENI and retries: starting
// over would cost three more mutating calls. After any other error it asks EC2 whether the ENI
// is attached: the answer may have been lost, possibly that of a request which the client
// repeated by itself and EC2 then refused. After an earlier attempt, which may have taken
// effect, a list that lacks the attachment may be outdated.
func attachCreated(ctx context.Context, c Calls, id ipam.ENIID, card, device int) (string, error) {
	limit, believe := c.Now().Add(AttachRetryLimit), c.Now().Add(listRest)
	var clock BackoffTimer
	for try := 1; ; try++ {
		attachment, err := c.AttachENI(ctx, id, card, device)
		switch {
		case err == nil:
			return attachment, nil
		case IsThrottled(err):
			note(c, "attach throttled, ENI kept", id, err)
		default:
			found, describeErr := c.DescribeENIs(ctx, []ipam.ENIID{id})
			if describeErr == nil && len(found) == 1 && found[0].AttachmentID != "" {
				return found[0].AttachmentID, nil
			}
			if !IsUnanswered(err) && (try == 1 || !c.Now().Before(believe)) {
				return "", err
			}
		}
		if !c.Now().Before(limit) || pause(ctx, c, &clock, ThrottleFirst, ThrottleMax) != nil {
			return "", err
		}
	}
}

func setUpENI(ctx context.Context, c Calls, eni ipam.ENI) error {
	if err := c.SetUpENI(ctx, eni); err != nil {
		return fmt.Errorf("set up ENI %s: %w", eni.ID, hostFailure(err))
	}
	return nil
}

// persist repeats an idempotent call while it is throttled or not answered.
func persist(ctx context.Context, c Calls, call func() error) error {
	limit := c.Now().Add(AttachRetryLimit)
	var clock BackoffTimer
	for {
		err := call()
		if err == nil || (!IsThrottled(err) && !IsUnanswered(err)) || !c.Now().Before(limit) {
			return err
		}
		if pause(ctx, c, &clock, ThrottleFirst, ThrottleMax) != nil {
			return err
		}
	}
}

// NotSetUp is the note about each failed attempt of adoptENI.
const NotSetUp Note = "ENI not set up, will retry"

// adoptENI sets up an attached ENI that could not be set up before, retrying until it succeeds
// or the ENI is gone. Both results are false if the procedure had to end first.
func adoptENI(ctx context.Context, c Calls, eni ipam.ENI) (adopted, ended bool) {
	var clock BackoffTimer
	var believe time.Time
	missed := false
	for {
		err := setUpENI(ctx, c, eni)
		if err == nil {
			return true, true
		}
		found, describeErr := c.DescribeENIs(ctx, []ipam.ENIID{eni.ID})
		if describeErr == nil && (len(found) == 0 || !found[0].Attached()) {
			if missed && !c.Now().Before(believe) {
				return false, true
			}
			if !missed { // one list that lacks it proves nothing
				missed, believe = true, c.Now().Add(listRest)
			}
		} else if describeErr == nil {
			missed = false
		}
		note(c, NotSetUp, eni.ID, err)
		if pause(ctx, c, &clock, ThrottleFirst, ThrottleMax) != nil {
			return false, false
		}
	}
}
