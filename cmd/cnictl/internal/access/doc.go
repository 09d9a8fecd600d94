// Package access finds the nodes that a command reads: from --targets, a cluster, a
// recording, or this host. It checks permissions and explains errors; the packages sweep and
// follow read the nodes.
package access
