// Package oldipamd is a stand-in for the daemon of upstream, v1.23: it serves upstream's
// gRPC on one Unix socket and nothing else, hands out what a test scripted for
// each pod, and keeps who holds what, so that a test sees what leaks.
//
// Its answers have upstream's texts and its faults: an unknown sandbox is an error
// (spec/plugin.md §4.3), every refusal of an ADD is Success=false without a reason.
package oldipamd
