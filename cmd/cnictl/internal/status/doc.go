// Package status implements cnictl status: the fleet on one screen. Drawing is a pure
// function of a sweep and a frame (view.go, sections.go); status.go reads and writes.
package status
