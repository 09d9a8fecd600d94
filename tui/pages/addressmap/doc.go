// Package addressmap draws the addresses of a block one by one, with the signs that bars
// and charts have too.
package addressmap
