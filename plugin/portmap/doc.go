// Package portmap replaces the reference plugin of that name when there is nothing to do:
// nearly every pod has no host port, and the reference plugin costs each of them as much
// as aws-cni does, half of it for asking iptables for its version.
//
// Everything else is left to the reference plugin, which is installed next to it as
// [Reference] and is executed in its place: pods with host ports, the rarer verbs, and any
// input that this package does not understand, so that errors have the reference plugin's
// texts.
package portmap
