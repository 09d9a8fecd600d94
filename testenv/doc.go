// Package testenv runs tests in an isolated part of the kernel.
//
// Below it is the test bed: aws is EC2 and what else of AWS a node talks to, network the VPC
// that its packets cross, node an instance, kube the API server and clusters, sim all of that on
// virtual time. text and rules check texts and the tree, cmd has programs.
//
// [Main], called from TestMain, runs the test binary again inside fresh network, mount and
// process namespaces (and a user namespace if the caller is not root), with `lo` up and a
// private tmpfs on /run. There a test may create links, rules, chains and namespaces: none of
// them affects the machine, and all disappear with the test process, even if SIGKILL ends it.
// [Enter] does the same for helper programs.
//
// [MainOn] is Main for tests that need a feature few kernels have, such as 802.1q VLAN: if the
// machine's kernel lacks it, the test binary runs in a virtual machine (testenv/network/vm).
//
// [Eventually], [Receive], [Never] and [Within] are how all tests wait, without limits of their
// own that a busy machine would not meet.
//
// If the kernel refuses a sandbox, the tests run in place, and those that call [RequireRoot]
// are skipped with the exact reason and the command that would run them. CNI_TEST_REQUIRE, a
// comma-separated list of requirements such as "root,nft,vlan" or "all", turns such a skip
// into a failure: CI sets it.
//
// Only tests and the programs under testenv/cmd import this tree: no fake may be linked into
// a shipped binary.
package testenv
