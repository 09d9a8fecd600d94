// Package branch has those tests of pods with branch ENIs, for aws-cni and for
// plugin/podnet/apply below it, that need VLAN devices. They are a separate package
// because on a kernel without VLAN support the test binary runs in a virtual machine with
// an emulated CPU, which would make the other pods' tests slow.
package branch
