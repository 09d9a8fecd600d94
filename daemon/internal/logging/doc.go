// Package logging opens the daemon's log: slog over upstream's JSON lines
// (daemon/api/logline), written to stdout, stderr or a rotated file.
//
// There is no global logger: main opens one, passes it down and closes it. Messages are
// constant; details are members named by logline's keys.
//
// The caller's goroutine formats a line, and one goroutine behind a bounded queue writes
// it: the daemon's owner goroutine logs too and must not wait for a disk. Close ends the
// queue.
//
// A second goroutine compresses and removes old files (daemon/logfile says which, and what is
// no log file); Close ends it too.
package logging
