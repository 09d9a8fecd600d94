// Package node runs simulated EC2 instances. Each is a network, mount, process, IPC and
// host-name namespace on a vpc.Fabric, in which the real daemon and plugin run as on a node.
//
// [Start] boots an instance of the fabric's world. Its primary ENI is configured as
// cloud-init and the init container leave it, with IPv6 if it has an IPv6 address, and /run is
// a private tmpfs, so fixed socket paths exist once per node. [Node.StartDaemon] runs the daemon
// with the manifest's environment. [Node.AddPod] and [Node.DelPod] do what a container
// runtime does: create a network namespace, run the plugin, keep its result for DEL,
// remove the namespace. [Node.Leftovers] lists what deleted pods left behind.
//
// Files that the programs would write on the host (binaries, conflist, logs) are
// redirected to [Options].Dir by the corresponding settings, as root and as an ordinary user
// alike. Where the usual directory exists, the node's directory is mounted over it, so a
// program that ignores its settings cannot change the machine's files.
//
// Everything ends with the process that called Start, even if that is killed. A node never
// sleeps where it can wait for a condition, and leaves checks to the tests.
package node
