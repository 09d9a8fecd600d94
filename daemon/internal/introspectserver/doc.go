// Package introspectserver serves a node's introspection documents: upstream's /v1 documents
// byte for byte, and ours under new paths, on loopback TCP or a Unix socket, without
// authentication.
//
// It reads immutable views from its Source and never the address book itself, so a slow
// client blocks nothing. The conversions (convert.go, summary.go, plan.go, pod.go) are
// pure.
//
// The daemon appends state changes and failed ADDs to a [Feed] and a [FailureLog], which
// are bounded and never wait for a reader.
//
// The package must not show sandbox ids or secrets, and must not write. It answers every
// request within 5 s or drops it; a request for events may wait up to 30 s longer.
package introspectserver
