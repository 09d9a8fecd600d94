// Package collect reads a cluster from outside as evidence for the doctor: the objects of
// Kubernetes; the answers, metrics and logs of the nodes' daemons; by exec, what only a node
// itself can see; and EC2.
//
// It only reads. All nodes are swept once; what takes several requests is read only from nodes
// that were named or look faulty. Cluster-wide objects are read once and shared by the readings
// of all nodes, which must not be changed. Each source has its own time limit, and one that
// cannot be read is missing with the reason.
package collect
