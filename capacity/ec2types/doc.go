// Package ec2types reads instance types from EC2's DescribeInstanceTypes: a single one, as
// the daemon does for a type that is missing from the built-in table, or all types of a
// region.
//
// Everything it returns has passed limits.Instance.Check. It creates no client:
// credentials, region and retries are the caller's responsibility.
package ec2types
