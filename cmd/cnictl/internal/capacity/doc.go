// Package capacity implements cnictl capacity: how many pods fit, on which instance type,
// with which settings. The packages below the top-level capacity/ compute it.
package capacity
