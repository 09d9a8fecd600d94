package vpcrc

import (
	"strconv"
	"time"
)

const (
	defaultCooldown = time.Minute
	minCooldown     = 30 * time.Second
)

// cooldownOf parses the ConfigMap's value. An invalid number keeps the current value, which is
// the default at the start.
func cooldownOf(value string, current time.Duration) time.Duration {
	seconds, err := strconv.Atoi(value)
	if err != nil {
		return current
	}
	return max(time.Duration(seconds)*time.Second, minCooldown)
}
