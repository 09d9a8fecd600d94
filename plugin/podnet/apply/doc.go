// Package apply puts the wanted state of one pod (plugin/podnet/rules) into the kernel,
// and removes it again.
//
// [Netns] checks and holds the pod's namespace. For an ordinary IPv4 pod, [Setup] then
// takes three sends: the veth pair through a socket on the host, everything inside the pod
// through a socket there, routes and rules through the first socket again. Nothing is
// listed or looked up by name unless something is in the way. Each further interface adds
// the send of its pair. IPv6 adds sysctls, a link-local address on the host and a wait
// until links and addresses are usable; a branch ENI adds its VLAN device. Undo reverts
// what Setup did, in reverse order.
//
// With Options.Stay the process is left with a thread in the pod's namespace, and must be
// able to live with that. Failures are a *StepError that names the step.
package apply
