// Package aggregate turns what the ipamd of every node counts into figures of the
// cluster, one set for each poll.
//
// It is pure: it gets lists and readings, and answers with figures. For each pod it keeps
// the counters of the last reading, and adds up the increases of the nodes rather than
// those of the sums: a node that cannot be read, restarts, comes or goes does not affect
// the others.
//
// What is published of a counter adds up to what the nodes counted, for all pods that
// appeared while the helper ran; of those that were there first it is what they counted
// since they were first read. It never takes an old count for a new one.
package aggregate
