// Package store holds the state of a fleet while it is watched: the newest sample
// of each node, a short history, and sums that are kept up as samples come. It is pure:
// time comes with the samples.
//
// Writers put samples; readers take a [View], which never changes. A [Node] is made
// again by each sample, so a reader may keep it as long as it likes.
package store
