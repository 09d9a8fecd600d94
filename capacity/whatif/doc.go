// Package whatif predicts what a node's pool holds, and what that costs, under settings that
// it does not have yet.
//
// [Upstream] is the loop of upstream's daemon, step by step, on a node whose pods come one at
// a time. The package is pure.
package whatif
