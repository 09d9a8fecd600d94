// Package subnets computes more about a subnet than the sums in the store: how much of its
// range is in use and by whom, which /28 blocks can still become prefixes, and when it will run
// out of addresses at the measured rate. It is pure.
package subnets
