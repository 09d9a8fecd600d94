// Package checkpoint is the codec of ipam.json, the file in which the daemon keeps
// which sandbox owns which address.
//
// The file is upstream's, byte for byte (spec/ipamd.md §3.1): either daemon
// reads what the other wrote, so that a node can be moved to ours and back without
// losing an allocation. [Decode] reads every form upstream ever wrote, with its
// rule of compatibility: unknown members are ignored, missing ones are zero, what
// follows the first JSON value is ignored, the version must match.
//
// Entries are kept encoded ([EncodeEntry] once per ADD) and the file is put together
// from them ([Append]), because it is written before each ADD is answered.
//
// The package does no I/O; daemon/internal/checkpoint stores the file.
package checkpoint
