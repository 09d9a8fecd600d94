// Package maxpods computes how many pods a node has addresses for, and judges the max-pods
// setting of its kubelet.
//
// [Compute] shows every term, because a bare number does not convince: which interfaces
// count, what each holds, what is deducted and why. The published rules that other tools
// use (the max-pods file, the calculator script, nodeadm, Karpenter) are here too,
// unchanged, so that differences can be explained.
//
// All figures are for the default network card and IPv4 unless stated otherwise. The
// package is pure: the caller passes the facts about the node, and nothing is looked up
// except instance types in package limits.
package maxpods
