// Package enis implements cnictl enis: the ENIs of all nodes in one list.
package enis
