// Package schedule plans which node of a fleet is read next. It is pure: time is an
// argument, and what was read is reported to it.
//
// What is looked at comes first, then the others, and none is starved by those before
// it: every second pick of what is looked at, and every one of the others, is of the
// node that is due longest, and after a few of the former one of the others has its turn.
//
// An upstream node is never read more often than every [UpstreamMin], whoever
// asks, as each request writes a line into its log. A node that fails [BrokenAfter]
// times in a row is left alone for [BrokenEvery]. The rest is read at the interval that
// the fleet's size allows: [Plan.Background] widens with what reading costs.
//
// The first look at each node is what the user waits for. Until everybody has had it
// ([Plan.Swept]) reading may take what it needs to be over within [FirstWithin], where
// answers come that fast; afterwards it is held to [MaxShare] of one processor.
package schedule
