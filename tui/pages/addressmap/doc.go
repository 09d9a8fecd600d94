// Package addressmap draws the addresses of a block one by one, with the same signs as in
// bars and charts.
package addressmap
