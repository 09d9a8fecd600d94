// Package apply puts the wanted state of one pod (plugin/podnet/rules) into the
// kernel, and takes it out again.
//
// [Netns] checks and holds the pod's namespace. [Setup] then goes in three sends for an
// ordinary IPv4 pod: the veth pair through a socket on the host, everything inside the
// pod through a socket there, route and rules through the first again. Nothing is listed
// or looked up by name, unless something is in the way. Each further interface adds the
// send of its pair. IPv6 adds sysctls, a link-local address on the host and a wait until
// links and addresses are in use; a branch ENI its VLAN device. What Setup has done it
// undoes with Undo, in reverse.
//
// With Options.Stay the process is left with a thread in the pod's namespace, which must
// not matter to it. Failures are a *StepError with the step.
package apply
