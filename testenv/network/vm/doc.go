// Package vm runs a test binary again in a virtual machine, for features that the machine's
// kernel lacks (802.1q VLAN above all).
//
// [Run] boots Debian's kernel in QEMU. The calling program is process 1 of the guest: there
// [Maybe] mounts the usual file systems, starts the program once more with the same
// arguments, environment and working directory, and reports its exit status. The guest sees
// the caller's file system, read-only, with a tmpfs for temporary files. The program's output
// appears as it is printed. A guest that ends without a report has crashed: Run returns the
// end of its console as an error, never a status.
//
// QEMU emulates the CPU (TCG), so a guest depends neither on /dev/kvm nor on the model of
// the host's CPU. Emulated code is slow. What a test needs but does not test, such as an
// API server, stays outside: see [Options.Ports].
//
// The guest's program runs in a separate network namespace with nothing but loopback, and
// ends with the caller, even if the caller is killed.
//
// QEMU, the kernel and its modules come from Debian's packages, which "make vm" unpacks
// into the cache.
package vm
