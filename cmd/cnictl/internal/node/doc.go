// Package node implements cnictl node: one node in full, its ENIs, addresses and settings.
// cnictl local uses the same commands for its own node.
package node
