// Package branch has the tests of pods with branch ENIs, of aws-cni and of
// plugin/podnet/apply below it, that need VLAN devices. They are a package of their own
// because where the kernel has none, the whole of a test binary runs in user-mode Linux,
// which lacks what the tests of other pods need.
package branch
