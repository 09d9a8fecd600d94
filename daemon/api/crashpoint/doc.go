// Package crashpoint names the points at which the daemon and the plugin may die with work
// half done, and lets a test kill them there.
//
// In a normal build [Here] is an empty function that is compiled away: a release contains
// neither the check nor the names, which testenv/rules/archtest verifies. A build with the tag
// "crashpoints" reads two environment variables:
//
//   - CNI_CRASH_AT=name or name:nth kills the process with SIGKILL when it passes the
//     point for the first, or the nth, time since its start. Nothing is flushed and
//     no deferred function runs.
//   - CNI_CRASH_LIST=path appends the name of each point to a file as it is passed,
//     one per line. After a kill, the last line names the point.
//
// It is a leaf package; packages of every layer may use it.
package crashpoint
