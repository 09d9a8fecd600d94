// Package cluster finds out from a Kubernetes API server which nodes there are, which of
// them run the daemon, and how each is reached; it also reads pods, events, logs and
// CNINodes for those who look at one node.
//
// It only reads. Of nodes and aws-node pods it keeps what a row needs; pods of anybody else
// are read for one node at a time. Lists are paged, and nothing of an object that is not
// kept is decoded.
package cluster
