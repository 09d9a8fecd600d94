// Package aggregate turns the metrics of every node's ipamd into figures of the cluster, one
// set for each poll.
//
// It is pure: it takes lists and readings, and returns figures. For each pod it keeps the
// counters of the last reading, and it adds up each node's increases rather than comparing
// sums. So a node that cannot be read, restarts, comes or goes does not affect the others.
//
// The published values of a counter add up to what the nodes counted: for pods that appeared
// while the helper ran, all of it; for pods that were there first, what they counted since
// they were first read. An old count is never taken for a new one.
package aggregate
