// Package logs implements cnictl logs: the newest lines of the daemons' logs, merged by time.
// Reading lines (line.go) is pure.
package logs
