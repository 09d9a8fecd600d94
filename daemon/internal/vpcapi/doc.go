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
// The package decides nothing and retries nothing: the SDK's standard retryer
// (AWS_MAX_ATTEMPTS, AWS_RETRY_MODE) does what is safe, the planner the rest. It
// reads no metadata and keeps no state but the subnets of its zone and of its own ENIs,
// for checking.
// A Client may be used by many goroutines.
package vpcapi
