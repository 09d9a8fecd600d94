package vpcrc

import (
	"strconv"
	"time"
)

const (
	defaultCooldown = time.Minute
	minCooldown     = 30 * time.Second
)

// cooldownOf reads the ConfigMap's value. Without a valid number the current value stays, at
// the start the default.
func cooldownOf(value string, current time.Duration) time.Duration {
	seconds, err := strconv.Atoi(value)
	if err != nil {
		return current
	}
	return max(time.Duration(seconds)*time.Second, minCooldown)
}
