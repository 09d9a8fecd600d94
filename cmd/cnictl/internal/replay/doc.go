// Package replay implements cnictl replay: a recording on the screens, or its state at one
// time.
package replay
