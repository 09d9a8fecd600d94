// Package node runs simulated EC2 instances: each a network, mount, process and
// host-name namespace on a vpc.Fabric, in which the real daemon and the real plugin
// run as on a node.
//
// [Start] boots an instance of the fabric's world: its primary ENI is configured as
// cloud-init and the init container leave it, with IPv6 if it has an address, and /run is a
// tmpfs of its own, so fixed socket paths exist once per node. [Node.StartDaemon] runs the daemon with the
// manifest's environment, [Node.AddPod] and [Node.DelPod] do what a container
// runtime does: make a network namespace, run the plugin, keep its result for DEL,
// remove the namespace. [Node.Leftovers] lists what a deleted pod left behind.
//
// Files that the programs would write on the host (binaries, conflist, logs) are
// redirected to [Options].Dir by the settings that exist for it, as root and as an
// ordinary user alike; where the usual directory exists it is covered by the node's
// own, so that a program which ignores its settings cannot change the machine's.
//
// Everything ends with the process that called Start, even if that is killed. A node never
// sleeps where it can wait for a condition, and leaves checks to the tests.
package node
