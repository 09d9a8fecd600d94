// Package ec2 reads EC2 and, for an installation, EKS and IAM, as evidence for the doctor. It
// uses the caller's AWS credentials from the SDK's default chain, and only read-only actions
// (deploy/iam/cnictl-doctor.json). It is the only package of cnictl that links the SDK's clients
// of these services.
package ec2
