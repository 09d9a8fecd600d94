// Package access finds the nodes of a command: from --targets, a cluster, a recording, or
// this host. It checks permissions and explains errors; reading the nodes is up to sweep
// and follow.
package access
