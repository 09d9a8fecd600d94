// Package branch has the tests of daemon/internal/hostnet that need VLAN devices. They
// are a package of their own because where the kernel has none, the whole of a test
// binary runs in user-mode Linux, which lacks the packet filters that the other tests
// need.
package branch
