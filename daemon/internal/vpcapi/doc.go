// Package vpcapi makes the EC2 calls that give a node its network interfaces and
// addresses, over the real aws-sdk-go-v2.
//
// One method is one call (Unassign: one per kind of CIDR; the Describe methods: one
// per page). Every call is reported to Config.Observe, successes and failures alike.
// Answers are checked and turned into net/netip values: a malformed id, an address
// outside the interface's subnet, or one that no host can have, or a list longer than EC2 could give is an
// AnswerError that names the field. errors.go knows every EC2 error code that
// anybody reacts to; no other package compares codes.
//
// The package decides nothing. Who tries again: the SDK's retryer (AWS_MAX_ATTEMPTS,
// AWS_RETRY_MODE) makes the attempts of one call, pausing itself after lost answers and
// server errors. Every attempt passes the node's request budget (daemon/budget), and
// after a throttle that is the only pause: the SDK's is left out, so that the two do not
// add up. What the attempts did not bring is the caller's to try again, and whenever it
// does, the budget still holds. With AWS_RETRY_MODE=adaptive the SDK paces besides.
//
// Calls made with Urgent go before housekeeping.
//
// The package reads no metadata and keeps no state but the budget, and the subnets of
// its zone and of its own ENIs, for checking. A Client may be used by many goroutines.
package vpcapi
