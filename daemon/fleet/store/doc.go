// Package store holds the state of a watched fleet: the newest sample of each node, a short
// history, and running sums. It is pure: time comes with the samples.
//
// Writers put samples; readers take a [View], which never changes. Each sample creates a new
// [Node], so a reader may keep one as long as it likes.
package store
