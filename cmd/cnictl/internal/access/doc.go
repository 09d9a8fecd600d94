// Package access is how a command gets at nodes: those named by --targets, of a cluster, of a
// recording, or this host. It finds out which there are and who may read them, and says in
// words what to do where they cannot be had. Reading them is sweep's and follow's.
package access
