// Package limits knows the network limits of every EC2 instance type that a node may have:
// interfaces per network card, addresses per interface, trunking.
//
// The facts live in instance-limits.csv; `go generate` turns them into one sorted text
// constant that is searched in place, so the table costs a binary nothing until it is
// used. The package must not grow a map, an init function or a call to EC2: looking up
// types that are not in the table is the caller's job.
package limits

//go:generate go run ./internal/gen -in instance-limits.csv -out zz_generated.limits.go
