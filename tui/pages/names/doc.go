// Package names shortens the names of nodes, pods and interfaces to fit a page, safe to
// print.
package names
