// Package nodes is cnictl nodes: a row per node. RowOf, which says a node in cells,
// serves the status screen too.
package nodes
