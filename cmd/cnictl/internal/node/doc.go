// Package node is cnictl node: one node in full, its ENIs, its addresses, its
// settings. The commands are shared with cnictl local, which fixes the node.
package node
