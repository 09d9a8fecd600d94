// Package budget paces the EC2 requests of one process, so that a cluster of nodes
// shares the request limits of its account instead of fighting over them.
//
// EC2 keeps a token bucket per action, account and region and does not show how full
// it is. A [Budget] keeps a bucket per action too, of a node's share. Where EC2
// refuses a request all the same, the action's rate is multiplied down, what the
// bucket had saved is gone, and the next request waits a random time; successes add
// to the rate until it is the share again. That is additive increase and
// multiplicative decrease: nodes that hear nothing of each other come to even shares.
//
// A part of each bucket is kept for requests that a waiting pod needs: housekeeping
// waits while only that part is left. It shrinks with the rate; where it is less than a
// request, housekeeping that waits gets at least every fourth.
//
// Invariants: in any time t an action gets at most Burst + PerSecond·t requests,
// whatever the answers; a wait that Take returns is enough if no other caller takes, or
// ends when the last throttle is forgotten; the same calls with the same jitter give
// the same waits.
//
// Everything here is pure: time and jitter are arguments, and nothing sleeps. A Budget
// is not safe for use by several goroutines at once; its owner locks.
package budget
