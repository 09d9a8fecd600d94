// Package checkpoint keeps ipam.json on disk.
//
// At any moment, even after a kill or a loss of power, a reader finds the file from before
// or after a Write, never a mixture: the new content goes into a temporary file beside
// it, which is fsynced, closed and renamed over it, and the directory is fsynced. If a
// step fails (on a full disk, for instance), the old file stays and the temporary one is
// removed.
//
// A malformed file is never fatal and never deleted: it is renamed aside, and the entries
// that can be salvaged are returned with the reason. The daemon decides what the entries
// mean and whether their pods still exist. A file that cannot be read for now is left
// alone and fails the start.
//
// The format is daemon/api/checkpoint's. A Store has one user at a time.
package checkpoint
