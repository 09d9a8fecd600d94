package sim

import (
	"errors"
	"fmt"
	"time"
)

// Limits on our fleet's time, ENIs and requests, to catch regressions. The default fleet of
// 1,000 nodes has 1.6, 1.2 and 0.22.
const (
	mostTime      = 2.0 // times the bound set by the request limits alone
	mostENIs      = 1.5 // times what the pods need
	mostThrottled = 0.5 // times that of the model of upstream
)

// Verdict returns an error that names the limits our fleet exceeds, or nil. It judges the
// numbers of ENIs and throttled requests only if the request limits delay pods more than the
// wave does: otherwise each node also has the spare ENI that WARM_ENI_TARGET requests.
func (c Comparison) Verdict() error {
	var errs []error
	if c.Ours.Running < c.Ours.Pods {
		errs = append(errs, fmt.Errorf("%d of %d pods run; the others waited %v", c.Ours.Running, c.Ours.Pods, c.Fleet.Limit))
	}
	bound := c.Fleet.Bound()
	// No node comes up before its turn in the wave.
	soonest := max(bound.After, c.Fleet.Wave)
	if most := time.Duration(mostTime * float64(soonest)); c.Ours.All > most {
		errs = append(errs, fmt.Errorf("all pods run after %s; the limit is %g × %s, the bound set by the request limits and the wave",
			seconds(c.Ours.All), mostTime, seconds(soonest)))
	}
	if bound.After <= c.Fleet.Wave {
		return errors.Join(errs...)
	}
	needed := bound.Calls[createAction]
	if made := c.Ours.ENIs + c.Ours.Loose; float64(made) > mostENIs*float64(needed) {
		errs = append(errs, fmt.Errorf("%d ENIs were created; the limit is %g × %d, what the pods need", made, mostENIs, needed))
	}
	_, ours := c.Ours.Total()
	_, theirs := c.Upstream.Total()
	if float64(ours) > mostThrottled*float64(theirs) {
		errs = append(errs, fmt.Errorf("%d requests were throttled; the limit is %g × %d, what the model of upstream has", ours, mostThrottled, theirs))
	}
	return errors.Join(errs...)
}
