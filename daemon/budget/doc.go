// Package budget paces the EC2 requests of one process, so that a cluster of nodes shares
// the request limits of its account instead of fighting over them.
//
// EC2 keeps a token bucket per action, account and region and does not show how full it is.
// A [Budget] keeps a bucket per action too, sized for one node's share. If EC2 still
// refuses a request, the action's rate is multiplied down, the bucket loses its savings,
// and the next request waits a random time; successes raise the rate until it is back at
// the share. This is additive increase, multiplicative decrease: nodes that do not
// communicate converge to even shares.
//
// Part of each bucket is reserved for requests that a pod is waiting for: housekeeping
// waits while only that part is left. The reserve shrinks with the rate; when it is less
// than one request, waiting housekeeping gets at least every fourth.
//
// Invariants: in any time t an action gets at most Burst + PerSecond·t requests, whatever
// EC2 answers; a wait that Take returns is sufficient if no other caller takes, or ends
// when the last throttle is forgotten; the same calls with the same jitter give the same
// waits.
//
// Everything here is pure: time and jitter are arguments, and nothing sleeps. A Budget is
// not safe for concurrent use; its owner locks.
package budget
