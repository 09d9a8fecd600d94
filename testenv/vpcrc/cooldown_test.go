package vpcrc

import (
	"testing"
	"time"
)

func TestCooldownOf(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		value string
		want  time.Duration
	}{
		{"90", 90 * time.Second}, {"60", time.Minute}, {"30", 30 * time.Second}, {"29", 30 * time.Second}, {"0", 30 * time.Second},
		{"-5", 30 * time.Second}, {"", 45 * time.Second}, {"1m", 45 * time.Second}, {"60.5", 45 * time.Second},
	} {
		if got := cooldownOf(row.value, 45*time.Second); got != row.want {
			t.Errorf("%q: %s, want %s", row.value, got, row.want)
		}
	}
}
