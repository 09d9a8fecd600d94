// Package imds reads the instance metadata service over aws-sdk-go-v2: who the
// instance is, which network interfaces it has, what the VPC's CIDRs are.
//
// Three kinds of answers are distinguished. A value; nothing (404) where a node may
// rightly have none, see spec/ipamd.md §10.3; and a failure, which is always an
// error and never "nothing": an interface whose listing could not be read is not an
// interface without addresses. Errors name the path and, for an answer that makes
// no sense, what was expected.
//
// Metadata lags behind EC2. The package reports what it sees and does not judge.
package imds
