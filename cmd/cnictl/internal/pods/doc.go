// Package pods implements cnictl pods: every pod with its address, node and ENI, or why it has no
// address. daemon/fleet/inventory makes the rows, for the screen of pods too.
package pods
