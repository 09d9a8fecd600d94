// Package logs is cnictl logs: the newest lines of the daemons' logs, merged by their
// times. Reading lines (line.go) is pure.
package logs
