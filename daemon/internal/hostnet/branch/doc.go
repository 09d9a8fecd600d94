// Package branch has the tests of daemon/internal/hostnet that need VLAN devices. They are a
// package of their own because where the kernel has none, the whole test binary runs in a
// virtual machine, whose CPU is emulated: the other tests would be slow there.
package branch
