// Package nodes implements cnictl nodes: a row per node.
package nodes
