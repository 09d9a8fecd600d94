// Package nodes is cnictl nodes: a row per node.
package nodes
