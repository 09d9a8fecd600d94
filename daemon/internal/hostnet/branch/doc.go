// Package branch holds the tests of daemon/internal/hostnet that need VLAN devices. They are
// in a separate package because, on a kernel without VLAN devices, the whole test binary
// runs in a virtual machine with an emulated CPU, which would slow down the other tests.
package branch
