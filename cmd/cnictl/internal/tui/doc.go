// Package tui is cnictl tui: the full screen, on the live fleet or on a recording. The
// screens themselves are in the module's tui.
package tui
