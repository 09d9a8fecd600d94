package hostnet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/crashpoint"
	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/netstate"
	"cnictl/daemon/rtnl"
)

// SetupENI configures a secondary ENI. It waits for the link with the MAC until ctx ends.
// A repeated call repairs what is missing; if nothing is, it writes nothing.
func (h *Host) SetupENI(ctx context.Context, in rules.ENIInput) error {
	if err := in.Validate(); err != nil {
		return err
	}
	link, err := waitLink(ctx, in.MAC)
	if err != nil {
		return &LinkError{MAC: in.MAC, Err: err}
	}
	return with(func(c *rtnl.Conn) error {
		err := h.retryRoutes(ctx, func() error { return h.settleENI(c, in, link.Index) })
		if err != nil {
			return fmt.Errorf("set up ENI %s on link %s: %w", in.MAC, link.Name, err)
		}
		return nil
	})
}

// LinkError means that an ENI's link did not appear in time.
type LinkError struct {
	MAC string
	Err error
}

func (e *LinkError) Error() string { return fmt.Sprintf(textNoENI+": %v", e.MAC, e.Err) }

func (e *LinkError) Unwrap() error { return e.Err }

// Routes of an ENI are tried five times: the pause doubles up to 5 s, plus up to 15 %.
const (
	routeTries      = 5
	routeBackoffMax = 5 * time.Second
	routeJitter     = 0.15
)

// retryRoutes runs f again while it fails with a refused route, routeTries times in all.
func (h *Host) retryRoutes(ctx context.Context, f func() error) error {
	pause := h.opts.RouteBackoff
	for try := 1; ; try++ {
		err := f()
		if err == nil || try == routeTries || !refusedRoute(err) {
			return err
		}
		h.opts.Log.Warn("kernel rejected an ENI's route, retrying", "error", err, "attempt", try)
		timer := time.NewTimer(pause + time.Duration(rand.Float64()*routeJitter*float64(pause)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(err, ctx.Err())
		case <-timer.C:
		}
		pause = min(2*pause, routeBackoffMax)
	}
}

func refusedRoute(err error) bool {
	var failed *rtnl.Error
	return errors.As(err, &failed) && (failed.Op == "replace route" || failed.Op == "delete route")
}

// settleENI applies the differences until there are none. Deleting a foreign address can
// also remove ours of the same subnet, so one round is not always enough.
func (h *Host) settleENI(c *rtnl.Conn, in rules.ENIInput, index int32) error {
	const rounds = 4
	want := rules.ENI(in, index)
	for range rounds {
		link, ok, err := c.LinkByIndex(index)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("link %d is gone: %w", index, unix.ENODEV)
		}
		now, err := readStateOf(c, []netstate.Link{link}, familyBy(want.IPv6))
		if err != nil {
			return err
		}
		changes := rules.DiffENI(now, link, in, want)
		if len(changes) == 0 {
			return nil
		}
		h.opts.Log.Info("ENI is being configured", "link", link.Name, "changes", len(changes), "table", in.Table())
		crashpoint.Here(crashpoint.BeforeENISetUp)
		if err := do(c, changes); err != nil {
			return err
		}
		crashpoint.Here(crashpoint.AfterENISetUp)
	}
	return errors.New("its addresses, routes or rules keep changing: something else manages the link")
}
