// Package follow shows nodes while they change, for --watch: at every change of a cluster, or
// every interval, and the upstream nodes no more often than these bear. It ends when
// the user ends it, which is no error.
package follow
