// Package fleet reads the pools of many nodes: bounded workers, a deadline per
// node, partial results with a reason per node, and the best that each node can give:
// our summary, else upstream's /v1 answers, else its metrics, else what Kubernetes
// knows of it.
//
// A node is never dropped: what could not be read is in the list with its state and
// reason. Nothing is written anywhere; a node's text is carried as it came, and
// escaping it is the printer's.
//
// Reading (fleet.go, reader.go, ask.go) is the adapter; what is made of the results
// (status.go, problems.go, v1.go, metrics.go) is pure. How a node is reached is its
// target's: this package knows no cluster. Beneath it:
//
//	watch     the plain types between samplers and screens
//	schedule  which node is read next (pure)
//	live      the sampler that runs while somebody looks
//	store     the state of a fleet that is watched
//	record    samples in a file, and playing them
//	query     filters and orders over columns (pure)
//	show      texts of a node made safe and short (pure)
//	cluster   targets from a Kubernetes cluster
//	tunnel    streams to a node through the API server
package fleet
