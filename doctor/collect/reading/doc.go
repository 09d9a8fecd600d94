// Package reading converts what was read of a node or a cluster into sources of evidence,
// wherever the bytes come from: the node itself, its API, or a bundle. Objects of Kubernetes are
// read in daemon/fleet/kube.
//
// The package is pure. Its input comes from nodes and archives and may hold anything: a
// conversion returns a source or an error, in memory proportional to the input.
package reading
