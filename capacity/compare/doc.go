// Package compare computes what a number of pods needs on nodes of one instance type:
// nodes, the CPU and memory left for each pod, addresses and money. It is pure.
package compare
