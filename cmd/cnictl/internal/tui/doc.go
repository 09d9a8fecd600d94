// Package tui implements cnictl tui: the full screen, on the live fleet or on a recording.
// The screens themselves are in the top-level package tui.
package tui
