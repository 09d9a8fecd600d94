// Package introspectserver serves what a node says about itself: upstream's
// /v1 documents byte for byte, and ours under new paths, on loopback TCP or a Unix
// socket, without authentication.
//
// It reads immutable views from its Source and never the address book itself, so a
// slow client holds nothing. The conversions (convert.go, summary.go, plan.go, pod.go)
// are pure.
//
// What happens one after the other (state changes, failed ADDs) the daemon appends to
// a [Feed] and a [FailureLog], which are bounded and never wait for a reader.
//
// It must not show sandbox ids or secrets, must not write, and answers every
// request within 5 s or drops it; a request for events may wait up to 30 s more.
package introspectserver
