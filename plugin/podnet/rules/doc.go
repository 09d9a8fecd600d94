// Package rules says what one ordinary pod should look like in the kernel: its
// veth pair, the addresses, routes and neighbour inside the pod, the route and
// policy rules on the host, the sysctls of the host link.
//
// It is pure: values in, values out, each with a String that reads like the ip
// command that would make it. Names of links are fixed by netnames; MACs and link
// indexes are derived from the sandbox, so nothing has to be listed or drawn at
// random. plugin/podnet/apply puts the state into the kernel. This package decides
// nothing about branch ENIs and pods with several interfaces beyond their removal.
package rules
