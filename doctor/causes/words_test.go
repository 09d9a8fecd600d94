package causes

import (
	"testing"
	"time"

	"cnictl/doctor/evidence"
)

func TestAge(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		time.Minute: "1 minute", 90 * time.Minute: "90 minutes", 2 * time.Hour: "2 hours", 48 * time.Hour: "2 days",
	} {
		if got := age(d); got != want {
			t.Errorf("age(%s) is %q, not %q", d, got, want)
		}
	}
}

// TestConditionNamedOnce: the subject of an observation names the condition, so that what it is need not.
func TestConditionNamedOnce(t *testing.T) {
	t.Parallel()
	o := observation{subject: "PIDPressure", is: conditionIs(evidence.Condition{Type: "PIDPressure", Status: "True", Reason: "KubeletHasPIDPressure"})}
	if got, want := o.String(), "PIDPressure: True KubeletHasPIDPressure"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
}
