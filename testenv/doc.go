// Package testenv gives tests a kernel of their own.
//
// [Main], called from TestMain, runs the test binary again inside fresh network,
// mount and process namespaces (and a user namespace when the caller is not
// root), with `lo` up and a private tmpfs on /run. There a test may make links,
// rules, chains and namespaces: nothing of it touches the machine, and all of it
// disappears with the test process, also when that is killed with SIGKILL.
// [Enter] is the same for helper programs.
//
// [MainOn] is the same for tests of what few kernels have, 802.1q VLAN: where the
// machine's kernel lacks it, the test binary runs in a virtual machine (testenv/vm).
//
// Where the kernel refuses this, the tests run in place and those that call
// [RequireRoot] are skipped with the exact reason and the command that would run
// them. CNI_TEST_REQUIRE, a comma list of requirements such as
// "root,nft,vlan" or "all", turns such a skip into a failure: CI sets it.
//
// Only tests and the programs under testenv/cmd import this tree: no fake may be
// linked into a shipped binary.
package testenv
