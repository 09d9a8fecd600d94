// Package ec2types reads instance types from EC2's DescribeInstanceTypes: one, as the daemon
// does for a type that the built-in table lacks, or all of a region.
//
// What it returns has passed limits.Instance.Check. It makes no client: credentials, region
// and retries are the caller's.
package ec2types
