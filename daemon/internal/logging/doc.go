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
// Lumberjack rotates the file. It starts one goroutine, which compresses and removes old
// files and never ends; nothing else runs in the background.
package logging
