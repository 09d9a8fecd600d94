// Package branch has the tests of pods with branch ENIs, of aws-cni and of
// plugin/podnet/apply below it, that need VLAN devices. They are a separate package
// because without VLAN in the kernel the test binary runs in a virtual machine, whose CPU
// is emulated: the tests of other pods would be slow there.
package branch
