// Package imds reads the instance metadata service with aws-sdk-go-v2: the instance's
// identity, its network interfaces and the VPC's CIDRs.
//
// A read has one of three outcomes: a value; nothing (404), where a node may legitimately
// have none, such as an interface without prefixes (EC2 User Guide, "Instance metadata
// categories"); or a failure. A failure is always an error and never "nothing": an interface
// whose listing could not be read is not an interface without addresses. Errors name the path
// and, for a malformed answer, what was expected.
//
// Metadata lags behind EC2. The package reports what it sees and does not judge it.
package imds
