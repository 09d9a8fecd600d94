// Package bundle reads and writes archives of evidence: those of cnictl bundle, and those of
// eks-log-collector and of our script aws-cni-support.sh, which it reads as they are. Archives
// are untrusted: they are read as a stream, nothing is ever written to disk, and anything that no
// collector makes is refused.
package bundle
