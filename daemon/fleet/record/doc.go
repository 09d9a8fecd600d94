// Package record keeps samples of a fleet in a file and plays them again.
//
// A recording is gzip over lines of JSON: a header, then an entry per line with its
// time. An entry holds a sample of a node, or says that a sample was like the one before,
// or that a node is gone, or holds documents that a node was asked for beside its sample:
// its plan, failed ADDs, events, log, pods, and what its kernel has for single pods. Every
// few minutes a key frame begins: a gzip member of its own with all nodes, so that a player
// can begin there. A file that ends in the middle is played up to there.
//
// The header may name a moment, such as an incident, at which the screens open.
//
// A recording is made to be handed on, so it holds what the screens show and nothing
// more: no environment, no tokens, of annotations only vpc.amazonaws.com/pod-eni; of the
// labels of a node those of Kubernetes, AWS, eksctl and Karpenter; and messages and log
// lines without what looks like a credential or a container id.
//
// What is read is hostile: the sizes of lines, nodes and the file are bounded.
package record
