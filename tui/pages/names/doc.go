// Package names writes the names of nodes, pods and interfaces as a page has room for
// them, safe to print.
package names
