// Package reading turns what is read of a node, file by file, into the sources of evidence,
// wherever the bytes come from: the node itself, its API, or a bundle. It is pure.
package reading
