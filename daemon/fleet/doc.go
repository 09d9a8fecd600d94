// Package fleet reads the address pools of many nodes with bounded workers, a deadline per
// node, and partial results with a reason per node. From each node it takes the best source
// available: our summary, else upstream's /v1 answers, else its metrics, else what
// Kubernetes knows about it.
//
// A node is never dropped: an unreadable node is listed with its state and reason. The
// package writes nothing, and passes a node's text on unchanged: escaping it is the
// printer's job.
//
// The readers (fleet.go, reader.go, ask.go) are the adapter; the evaluation of the results
// (status.go, problems.go, v1.go, metrics.go) is pure. A target knows how to reach its node:
// this package knows no cluster. Subpackages:
//
//	watch     the plain types between samplers and screens
//	schedule  which node to read next (pure)
//	live      the sampler, which runs while somebody is watching
//	store     the state of a watched fleet
//	record    writes samples to a file and plays them back
//	query     filters and orders over columns (pure)
//	show      makes texts from nodes safe and short (pure)
//	cluster   targets from a Kubernetes cluster
//	tunnel    streams to a node through the API server
package fleet
