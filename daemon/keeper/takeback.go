package keeper

import "time"

// ReasonTakenBack is the Reason of an AddressReleased whose address no pod had: its ADD
// failed before it was answered. It does not cool.
const ReasonTakenBack = "PodAnnotationFailed"

// TakeBack ends an ADD that got its addresses, and fails all the same before the plugin
// has heard of them: those that it took are free again at once, since no packet was ever
// sent from them. What its sandbox had before stays, because that is a pod that lives.
// Done is called exactly once, when the disk knows, or cannot be told.
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
