package keeper

import "time"

// ReasonTakenBack is the Reason of an AddressReleased whose address no pod had: its ADD
// failed before it was answered. It does not cool.
const ReasonTakenBack = "PodAnnotationFailed"

// TakeBack ends an ADD that got its addresses but fails before the plugin is answered:
// they are free again at once, since no packet was ever sent from them. What the sandbox
// had before stays: that pod is running. Done is called exactly once, when that is on disk
// or cannot be written.
type TakeBack struct {
	Add  *Add
	Done func()
}

func (m TakeBack) handle(k *Keeper, now time.Time) {
	for _, a := range k.revert(m.Add.fresh, now) {
		k.record(now, AddressReleased{Assignment: a, Reason: ReasonTakenBack})
	}
	m.Add.fresh = nil
	k.answerDurably(now, func(time.Time) { m.Done() }, func(time.Time, error) { m.Done() })
}
