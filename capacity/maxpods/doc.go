// Package maxpods computes how many pods a node can give an address to, and judges
// the max-pods its kubelet was given.
//
// [Compute] shows every term, as a number alone is not convincing: which interfaces
// count, what each holds, what is taken away and why. The published rules that
// other tools use (the max-pods file, the calculator script, nodeadm, Karpenter) are
// here too, as they are, so that differences can be explained.
//
// All figures are for the default network card and IPv4 unless said otherwise. The
// package is pure: facts about the node come in, nothing is looked up except
// instance types in package limits.
package maxpods
