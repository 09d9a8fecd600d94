// Package lists are the screens of all pods and of all ENIs: lists with more rows than can be filtered and
// sorted at each key press. This happens in the background, and a table holds the first rows.
package lists
