// Package follow shows nodes while they change, for --watch: on every change of a cluster or
// every interval, but upstream nodes no more often than they can bear. It ends when the user
// ends it, which is no error.
package follow
