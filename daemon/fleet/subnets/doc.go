// Package subnets says what a fleet has in a subnet beyond the sums of the store: how much
// of the range is taken and by whom, which /28 blocks can still become prefixes, and when
// the subnet is empty if it goes on as measured. It is pure.
package subnets
