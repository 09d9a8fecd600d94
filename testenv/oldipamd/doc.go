// Package oldipamd is a stand-in for upstream's daemon, v1.23: it serves only upstream's gRPC,
// on a Unix socket, assigns what a test scripted for each pod, and records which sandbox
// holds what, so that a test sees leaks.
//
// Its answers have upstream's texts and its faults: an unknown sandbox is an error
// (spec/plugin.md §4.3), every refusal of an ADD is Success=false without a reason.
package oldipamd
