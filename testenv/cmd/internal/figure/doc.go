// Package figure prints the bench programs' results: numbers that may be unknown, quantiles,
// and columns of both.
package figure
