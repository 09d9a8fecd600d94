// Package lists are the screens that list what a fleet has: the pods, the ENIs and the trunks of all nodes, and
// the addresses of one ENI. Pods and ENIs are more rows than can be filtered and sorted at each key press: this
// happens in the background, and a table holds the first rows.
package lists
