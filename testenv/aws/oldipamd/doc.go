// Package oldipamd simulates upstream's daemon, v1.23: it serves only upstream's gRPC, on a
// Unix socket, assigns what a test scripted for each pod, and records which sandbox holds
// which addresses, so that a test can detect leaks.
//
// Its answers have upstream's texts and defects: an unknown sandbox is an error, and every
// refused ADD is Success=false without a reason.
package oldipamd
