// Package vpc is the aws-cni plugin: one CNI command per process. It asks the daemon for
// an address over the lean socket (daemon/api/cniwire), has plugin/podnet lay out and
// apply the pod's network, and prints the result.
//
// Invariants. Standard output carries the result or the error as JSON and nothing else. An
// ADD that fails leaves neither kernel state nor an allocation, unless only the policy
// agent failed: see enforcePolicy. A DEL succeeds whatever is missing, including the
// daemon. Upstream's error messages are kept byte for byte, all in compat_text.go;
// whatever else we know goes into "details", which begin with the code of the cause
// (daemon/api/cause); the log line ends with it. A failure to write the log never fails a
// command.
//
// VLAN ids, pod names and pod addresses are reused. For pods with branch ENIs, ADD
// therefore leaves a record (records.go) that tells DEL who owns the VLAN device; without
// a record, as for pods that upstream set up, the kernel's state decides.
//
// When nothing is listening on the lean socket, the plugin calls upstream's daemon over
// gRPC, through the program aws-cni-grpc (legacy.go, plugin/rpcclient).
//
// CHECK, STATUS and GC, which always succeed upstream, inspect the kernel and the daemon's
// checkpoint; docs/decisions/014-verbs.md explains what and why.
//
// Dispatch, configuration checks and the printing of results keep the behaviour and the
// texts of containernetworking/cni (skel, types), which is not linked: it would cost each
// start 0.4 ms, more than a tenth of an ADD. Tests compare with the library. net, os, fmt
// and encoding/json are not linked either.
//
// An ADD leaves a thread of its process in the pod's namespace, so from then on it
// inspects the host only through sockets that are already open.
package vpc
