// Package vpcapi makes the EC2 calls that give a node its network interfaces and addresses,
// with aws-sdk-go-v2.
//
// Each method makes one call (Unassign: one per kind of CIDR; the Describe methods: one
// per page). Config.Observe receives every call, whether it succeeds or fails. Answers are
// checked and converted to net/netip values: a malformed id, an address outside the
// interface's subnet or unfit for a host, or a list longer than EC2 could return is an
// AnswerError that names the field. errors.go has every EC2 error code that the daemon
// reacts to; no other package compares codes.
//
// The package decides nothing. The SDK's retryer (AWS_MAX_ATTEMPTS, AWS_RETRY_MODE) makes
// the attempts of a call and pauses after lost answers and server errors. Every attempt
// needs a turn from the node's request budget (daemon/budget). After a throttle, that is
// the only pause: the SDK's is skipped, so that the two do not add up. If all attempts
// fail, retrying is up to the caller, and the budget applies to it as well. With
// AWS_RETRY_MODE=adaptive the SDK paces in addition.
//
// Calls made with Urgent precede housekeeping.
//
// The package reads no metadata. Its only state is the budget and, to check answers, the
// subnets of its zone and of its own ENIs. A Client is safe for concurrent use.
package vpcapi
