// Package config holds the one table of environment variables: name, kind, default, bounds,
// readers, meaning and the setter into the typed [Config].
//
// [Load] is as lenient as the Amazon VPC CNI, row by row, but swallows nothing: each value
// not used as written becomes a [Problem]. [Validate] checks combinations, also against the
// facts of the instance type. [Config.Describe] says per variable what was declared, what
// is in effect and why. docs/configuration.md is generated from the table, and a test fails
// when it is stale.
//
// The package does not read the environment itself: main passes getenv. It does not log.
package config

//go:generate go test -run ^TestDocumentation$ -count=1 . -update
