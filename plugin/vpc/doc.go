// Package vpc is the aws-cni plugin: one CNI command per process. It asks the
// daemon for an address over the lean socket (daemon/api/cniwire), has
// plugin/podnet lay out and apply the pod's network, and prints the result.
//
// Invariants. Standard output carries the result or the error as JSON and nothing else.
// An ADD that fails leaves neither kernel state nor an allocation, except when only the
// policy agent failed: see enforcePolicy. A DEL succeeds whatever is missing, including
// the daemon. Error messages of upstream are kept byte for byte, all in compat_text.go;
// what we know beyond them goes into "details", which begin with the code of the cause
// (daemon/api/cause); the log line ends with it. Writing the log never fails a command.
//
// A VLAN id, a pod's name and its address all come back, so for pods with branch ENIs ADD
// leaves a record (records.go) by which DEL knows whose the VLAN device is; without one,
// as for upstream's pods, the kernel's state decides.
//
// When nothing listens on the lean socket, upstream's daemon is called over gRPC, through
// the program aws-cni-grpc (legacy.go, plugin/rpcclient).
//
// CHECK, STATUS and GC, which upstream answers with success, look at the kernel
// and at the daemon's checkpoint; docs/decisions/014-verbs.md has what and why.
//
// The dispatch, the configuration checks and the printing of results keep the
// behaviour and the texts of containernetworking/cni (skel, types), which is not
// linked: it costs each start 0.4 ms, more than a tenth of an ADD. Tests compare
// with the library. Nor are net, os, fmt and encoding/json linked.
//
// An ADD leaves a thread of its process in the pod's namespace, so after that it only
// looks at the host through sockets that are already open.
package vpc
