// Package whatif predicts what the pools of nodes would hold, and what that would cost,
// under settings they do not have yet.
//
// [Pool] is the pool of one node under a planner, ours or upstream's: the daemon's address
// book and planner on virtual time; the nodes of testenv/kube/fleetsim are such pools. [Grow]
// fills one, [Forecast] predicts one, and a [Run] simulates arriving and departing pods on
// many. The package is pure.
package whatif
