// Package rules describes what one pod should look like in the kernel: the veth pairs of
// its interfaces, the addresses, routes, rules and neighbours inside the pod, the routes
// and policy rules on the host, the VLAN device of a branch ENI, the sysctls.
//
// It is pure: values in, values out, each with a String that reads like the ip command
// that would create it. [NewPod] lays out an ordinary pod, of either family and with any
// number of interfaces, [NewBranchPod] one with its own branch ENI; a [Teardown] is what
// DEL removes. netnames determines the names of links; MACs and link indexes are derived
// from the sandbox, so nothing has to be listed or chosen at random. plugin/podnet/apply
// puts the state into the kernel.
package rules
