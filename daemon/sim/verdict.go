package sim

import (
	"errors"
	"fmt"
	"time"
)

// What ours may take of time, of ENIs and of everybody's requests, so that what it has
// reached is not lost unnoticed. The default fleet of 1,000 takes 1.6, 1.2 and 0.22.
const (
	mostTime      = 2.0 // times what the request limits alone impose
	mostENIs      = 1.5 // times what the pods need
	mostThrottled = 0.5 // of what the model of the original has
)

// Verdict is an error that names what ours takes too much of. How many ENIs are made and
// how many requests are throttled says something only where the request limits, and not
// the wave, are what the pods wait for: elsewhere each node has the spare ENI that
// WARM_ENI_TARGET asks for.
func (c Comparison) Verdict() error {
	var errs []error
	if c.Ours.Running < c.Ours.Pods {
		errs = append(errs, fmt.Errorf("%d of %d pods run: the others waited for %v", c.Ours.Running, c.Ours.Pods, c.Fleet.Limit))
	}
	bound := c.Fleet.Bound()
	// Nobody is there before the wave has brought him.
	soonest := max(bound.After, c.Fleet.Wave)
	if most := time.Duration(mostTime * float64(soonest)); c.Ours.All > most {
		errs = append(errs, fmt.Errorf("all pods run after %s: at most %g × %s is allowed, which is what the request limits and the wave impose",
			seconds(c.Ours.All), mostTime, seconds(soonest)))
	}
	if bound.After <= c.Fleet.Wave {
		return errors.Join(errs...)
	}
	needed := bound.Calls[createAction]
	if made := c.Ours.ENIs + c.Ours.Loose; float64(made) > mostENIs*float64(needed) {
		errs = append(errs, fmt.Errorf("%d ENIs were made: at most %g × %d is allowed, which is what the pods need", made, mostENIs, needed))
	}
	_, ours := c.Ours.Total()
	_, theirs := c.Original.Total()
	if float64(ours) > mostThrottled*float64(theirs) {
		errs = append(errs, fmt.Errorf("%d requests were throttled: at most %g × %d is allowed, which is what the model of the original has", ours, mostThrottled, theirs))
	}
	return errors.Join(errs...)
}
