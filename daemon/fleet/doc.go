// Package fleet reads the pools of many nodes: bounded workers, a deadline per
// node, partial results with a reason per node, and the best document that each
// node can give (our summary, else the original's /v1 answers).
//
// A node is never dropped: what could not be read is in the list with its state and
// reason. Nothing is written anywhere; a node's text is carried as it came, and
// escaping it is the printer's.
//
// Reading (fleet.go, read.go) is the adapter; what is made of the results
// (status.go, problems.go, v1.go) is pure.
package fleet
