// Package status is cnictl status: the fleet on one screen. What is drawn is a pure
// function of a sweep and a frame (view.go, sections.go); status.go reads and writes.
package status
