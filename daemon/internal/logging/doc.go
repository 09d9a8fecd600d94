// Package logging opens the daemon's log: slog over upstream's JSON lines
// (daemon/api/logline), written to stdout, stderr or a file that is rotated.
//
// There is no global logger: main opens one, hands it down and closes it. Messages
// are constant texts, details are members named by the keys of logline.
//
// Lines are formatted by who logs and written by one goroutine behind a bounded queue:
// the daemon's owner logs too, and must not wait for a disk. Close ends it.
//
// Rotation is lumberjack's. It starts one goroutine that compresses and removes old
// files and never ends; nothing else runs in the background.
package logging
