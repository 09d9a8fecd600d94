// Package checkpoint is the codec of ipam.json, the file in which the daemon records which
// sandbox owns which address.
//
// The format is upstream's, byte for byte: each daemon reads the other's file, so a node can
// be moved to ours and back without losing an allocation. [Decode] reads every form that
// upstream ever wrote, with upstream's compatibility rules: unknown members are ignored,
// missing ones are zero, anything after the first JSON value is ignored, and the version must
// match.
//
// Entries are kept encoded ([EncodeEntry] runs once per ADD) and the file is assembled from
// them ([Append]), because it is written before each ADD is answered.
//
// The package does no I/O; daemon/internal/checkpoint stores the file.
package checkpoint
