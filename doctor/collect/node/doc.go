// Package node reads evidence on the node that it runs on: kernel, files, processes, the instance
// metadata, and the daemon's own documents. It does not ask Kubernetes or EC2.
//
// All sources are read concurrently. One is given up when the reading has not gone on for the time
// of a source: a busy node makes a reading slow, only what hangs is missing. What cannot be read is
// missing with the reason; a program that hangs, a FIFO in place of a file or a log of any size
// costs no more than that source, and of a source that needs it in part no more than the part. Sandbox ids and
// credentials are removed from logs and
// environments as they are read.
package node
