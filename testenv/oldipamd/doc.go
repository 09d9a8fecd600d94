// Package oldipamd is a stand-in for the daemon of the original, v1.23: it serves the
// original's gRPC on one Unix socket and nothing else, hands out what a test scripted for
// each pod, and keeps who holds what, so that a test sees what leaks.
//
// Its answers have the original's texts and its faults: an unknown sandbox is an error
// (spec/plugin.md §4.3), every refusal of an ADD is Success=false without a reason.
package oldipamd
