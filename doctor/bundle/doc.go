// Package bundle reads and writes archives of evidence: those of cnictl bundle, and those of
// eks-log-collector and of our script aws-cni-support.sh, which it reads as they are. Archives
// come from anywhere. They are read as a stream, nothing of them is ever written to a disk, and
// what no collector makes is refused.
package bundle
