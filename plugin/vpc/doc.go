// Package vpc is the aws-cni plugin: one CNI command per process. It asks the
// daemon for an address over the lean socket (daemon/api/cniwire), has
// plugin/podnet lay out and apply the pod's network, and prints the result.
//
// Invariants. Standard output carries the result or the error as JSON and nothing
// else. An ADD that fails leaves neither kernel state nor an allocation. A DEL
// succeeds on whatever is missing, also when the daemon is. Error messages of the
// original are kept byte for byte, all in compat_text.go; what we know beyond them
// goes into "details". Writing the log never fails a command.
//
// The dispatch, the configuration checks and the printing of results keep the
// behaviour and the texts of containernetworking/cni (skel, types), which is not
// linked: it costs each start 0.35 ms, a tenth of a whole ADD. Tests compare with
// the library. Nor are net and encoding/json used on the usual path.
//
// A process runs on one locked thread, which an ADD moves into the pod's namespace
// and leaves there.
package vpc
