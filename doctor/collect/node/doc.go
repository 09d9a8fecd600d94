// Package node reads evidence on the node that it runs on: kernel, files, processes, the
// instance metadata, and the daemon's own documents. Kubernetes and EC2 are not asked.
//
// Every source is read on its own, beside the others and within its own time. What cannot
// be read is missing with the reason; a program that hangs, a FIFO in place of a file or a
// log of any size costs no more than that source. Sandbox ids and credentials are taken out
// of logs and environments as they are read.
package node
