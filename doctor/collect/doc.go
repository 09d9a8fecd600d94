// Package collect reads a cluster from outside as evidence for the doctor: the objects of
// Kubernetes, what the nodes' daemons answer, their metrics and logs, by exec what only the
// node itself can see, and EC2.
//
// It only reads. All nodes are swept once; what takes several requests is read of those
// alone that were named or look faulty. Cluster-wide objects are read once and shared by the
// readings of all nodes, which must not be changed. Each source is bounded by a time of its
// own, and one that cannot be read is missing with the reason.
package collect
