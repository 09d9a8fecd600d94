// Package pluginlog writes the log of one plugin run: lines are collected and appended
// to the file in one write, which rotates as upstream's. It never fails: a log that
// cannot be written is lost. It never writes to standard output, which carries the
// result.
package pluginlog
