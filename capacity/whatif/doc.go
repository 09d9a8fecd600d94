// Package whatif predicts what the pools of nodes hold, and what that costs, under settings
// that they do not have yet.
//
// [Pool] is the pool of one node under a planner, ours or upstream's: the address book of the
// daemon and its planner, on virtual time; the nodes of testenv/fleetsim are such pools.
// [Grow] fills one, [Look] compares one under two settings, and a [Run] plays pods that come
// and go on many. The package is pure.
package whatif
