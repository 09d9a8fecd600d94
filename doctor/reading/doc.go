// Package reading turns what is read of a node or a cluster into the sources of evidence,
// wherever the bytes come from: the node itself, its API, the API server, or a bundle.
//
// The package is pure. Its input comes from nodes and archives: whatever it holds, a
// conversion returns a source or an error, in memory proportional to the input.
package reading
