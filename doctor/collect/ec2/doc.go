// Package ec2 reads EC2 as evidence for the doctor, with the caller's AWS credentials: the
// SDK's default chain, and read-only actions alone (deploy/iam/cnictl-doctor.json). It is the
// only package of cnictl that links the SDK's EC2 client.
package ec2
