// Package record implements cnictl record: samples of the fleet written to a file, for replay.
package record
