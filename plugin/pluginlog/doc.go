// Package pluginlog writes the log of one plugin run. It collects the lines and appends
// them to the file in one write; files rotate as upstream's do. It never fails: if the log
// cannot be written, or what is in its place is no log file, the lines are lost. It never writes to standard output, which carries
// the result.
package pluginlog
