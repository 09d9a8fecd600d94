// Package portmap answers for the reference plugin of its name where that has nothing to
// do: nearly every pod has no host port, and the reference plugin costs each of them as
// much as aws-cni does, half of it for asking iptables for its version.
//
// Everything else is the reference plugin's, which lies beside under the name
// [Reference] and takes the process over: pods with host ports, the rarer verbs, and
// whatever is not understood here, so that errors are told in its words.
package portmap
