// Package ec2 reads EC2, and of an installation EKS and IAM, as evidence for the doctor, with the
// caller's AWS credentials: the SDK's default chain, and read-only actions alone
// (deploy/iam/cnictl-doctor.json). It is the only package of cnictl that links the SDK's clients
// of these services.
package ec2
