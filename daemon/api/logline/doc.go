// Package logline encodes log lines as upstream's loggers do:
//
//	{"level":"info","ts":"2026-08-21T09:14:03.123Z","caller":"ipamd/loop.go:81","msg":"…"}
//
// followed by our own members, whose names are the constants of keys.go. Log collectors and
// guides parse the first four.
//
// A line is built by appending: [Append] opens it, the Append functions add members, [End]
// closes it. Only the buffer is allocated, because the plugin writes lines too and lives
// for three milliseconds. The package does no I/O and reads no clock. The other
// hand-written encoders use its quoting as well.
package logline
