// Package record writes samples of a fleet to a file and plays them back.
//
// A recording is gzipped JSON lines: a header, then timestamped entries, one per line. An entry
// holds a sample of a node, or says that the sample was unchanged or that the node is gone, or
// holds other documents read from the node: its plan, failed ADDs, events, log, pods, and the
// kernel state of single pods. Every few minutes a key frame begins: a separate gzip member
// with all nodes, from which a player can start, and EC2's counts of the subnets' free addresses
// so far, or longer if the recording continues an earlier one. A truncated file is played up to the cut.
//
// The header may name a moment, such as an incident, at which the screens open.
//
// A recording is made to be shared, so it holds only what the screens show and the doctor reads with
// them: no environment and no tokens; of a pod's annotations only vpc.amazonaws.com/pod-eni, of its labels
// only k8s-app; of a node's labels and annotations only those of Kubernetes, AWS, eksctl, Karpenter and cnictl;
// and messages and log lines without anything that looks like a credential or a container ID.
//
// Members are only added: earlier versions skip those that they do not know, and what a recording of an
// earlier version lacks is unknown.
//
// Input is untrusted: the sizes of lines, nodes and the file are limited.
package record
