// Package replay is cnictl replay: a recording on the screens, or as it stood at one time.
package replay
