// Package figure is what the bench programs print with: numbers that may be unknown,
// quantiles, and columns of both.
package figure
