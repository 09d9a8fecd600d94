package sim

import "time"

// Fault is a fault of a call or a write, by its name in the summary.
type Fault string

// The faults of calls to EC2.
const (
	FaultThrottled        Fault = "throttled"    // RequestLimitExceeded, nothing done
	FaultRefused          Fault = "refused"      // a plain refusal, nothing done
	FaultBroken           Fault = "broken"       // InternalError, nothing done
	FaultErrorAfterEffect Fault = "half"         // InternalError, but done
	FaultLost             Fault = "lost-answer"  // done, but no answer
	FaultDropped          Fault = "lost-request" // not done and no answer
	FaultRepeated         Fault = "repeated"     // the answer was lost and the client's retry was carried out too
	FaultMasked           Fault = "masked"       // like repeated, but the retry was throttled
	FaultStuck            Fault = "stuck"        // an attachment that makes no progress
	FaultLess             Fault = "less"         // EC2 takes less than the type should
	FaultPartial          Fault = "partial"      // one of two calls of a release fails
)

// The other faults.
const (
	FaultMetadata Fault = "metadata"   // the metadata service does not answer
	FaultUnread   Fault = "unread"     // one of its lists cannot be read
	FaultKernel   Fault = "kernel"     // a netlink call fails
	FaultDisk     Fault = "disk-full"  // a write fails
	FaultSync     Fault = "disk-sync"  // a write is reported as failed but was done
	FaultHang     Fault = "disk-hangs" // a write takes seconds
	FaultDamage   Fault = "disk-loss"  // the file is truncated or gone after a crash
)

// answerLimit is how long a client waits for EC2's answer, including retries.
const answerLimit = 10 * time.Second

// fate is the outcome of one call.
type fate struct {
	fault  Fault         // "" if none
	reach  time.Duration // until the call reaches EC2
	answer time.Duration // from then to the answer
}

// fateOf draws the fate of a call to EC2.
func (w *World) fateOf() fate {
	d := w.dice.faults
	if w.Scenario.Pace != nil {
		return fate{}
	}
	f := fate{reach: d.span(2*time.Millisecond, 40*time.Millisecond), answer: d.span(20*time.Millisecond, 400*time.Millisecond)}
	if d.chance(0.05) {
		f.answer += d.span(0, 4*time.Second)
	}
	if w.settling || !d.chance(w.Scenario.CallFaults) {
		return f
	}
	f.fault = pick(d, FaultThrottled, FaultThrottled, FaultRefused, FaultBroken, FaultErrorAfterEffect, FaultLost, FaultDropped, FaultRepeated, FaultMasked)
	if f.fault == FaultLost || f.fault == FaultDropped {
		f.answer = answerLimit * time.Duration(d.between(1, 3))
	}
	return f
}

// strike returns true with the given probability, and then counts the fault.
func (w *World) strike(part float64, f Fault) bool {
	if w.settling || !w.dice.faults.chance(part) {
		return false
	}
	w.fault(f)
	return true
}

func (w *World) fault(f Fault) {
	w.stats.count(f)
	w.mix(uint64(len(f)))
}
