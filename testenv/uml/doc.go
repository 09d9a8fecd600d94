// Package uml runs a program again inside user-mode Linux: a Linux kernel that is an
// ordinary process, for what the machine's own kernel lacks (802.1q VLAN above all).
//
// [Run] boots it with the calling program as process 1 of the guest, which [Maybe] turns
// into one that mounts what a system has, loads modules when they are asked for, starts
// the program once more with the same arguments, environment and working directory, and
// ends the guest with it. The guest's file system is that of the caller, read-only, with
// a tmpfs for temporary files. What the program prints appears as it is printed; its exit
// status comes back in a file. A guest that ends without one has crashed: Run returns the
// end of its console as an error, and never a status.
//
// In the guest there is one CPU, legacy iptables under the names iptables and ip6tables
// (its kernel has no nftables NAT), and no network but what tests make. All of it ends
// with the caller, also when that is killed: callers run in a sandbox of testenv, whose
// process 1 takes everything with it.
//
// The kernel and its modules are those of Debian's package, which "make uml" unpacks into
// the cache.
package uml
