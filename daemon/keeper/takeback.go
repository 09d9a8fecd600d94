package keeper

import "time"

// ReasonTakenBack is the Reason of an AddressReleased whose address no pod ever had: its ADD
// failed before it was answered. The address has no cooldown.
const ReasonTakenBack = "PodAnnotationFailed"

// TakeBack reverts an ADD that got its addresses but fails before the plugin is answered: they
// are free again at once, since no packet was ever sent from them. Addresses that the sandbox
// already had stay: that pod is running. Done is called exactly once, when the change is on
// disk or cannot be written.
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
