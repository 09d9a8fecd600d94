// Package compare computes what a number of pods takes on nodes of one instance type: nodes,
// CPU and memory that are left for each pod, addresses and money. It is pure.
package compare
