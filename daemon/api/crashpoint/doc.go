// Package crashpoint names the moments at which the daemon and the plugin may die
// with something half done, and lets a test make them die there.
//
// In a normal build [Here] is an empty function that is compiled away: a release
// holds neither the check nor the names, which testenv/archtest proves. A build with
// the tag "crashpoints" reads two variables of the environment:
//
//   - CNI_CRASH_AT=name or name:nth kills the process with SIGKILL when it passes the
//     point for the first, or the nth, time since its start. Nothing is flushed and
//     no deferred function runs.
//   - CNI_CRASH_LIST=path appends the name of each point to a file as it is passed,
//     one a line. After a kill the last line is the point of it.
//
// It is a leaf; packages of every floor may be instrumented.
package crashpoint
