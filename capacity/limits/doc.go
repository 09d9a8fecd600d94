// Package limits knows the network limits of every EC2 instance type that a node
// may have: interfaces per network card, addresses per interface, trunking.
//
// The facts live in instance-limits.csv; `go generate` turns them into one sorted
// text constant that is searched where it lies, so that the table costs a binary
// nothing until somebody asks. The package must not grow a map, an init function
// or a call to EC2: a type that is not in the table is the caller's to look up.
package limits

//go:generate go run ./internal/gen -in instance-limits.csv -out zz_generated.limits.go
