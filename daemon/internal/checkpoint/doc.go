// Package checkpoint keeps ipam.json on disk.
//
// A reader at any moment, also after a kill or a loss of power, finds either the
// file before a Write or the one after it, never a mixture: the new content goes
// into a temporary file beside it, which is fsynced, closed and renamed over it,
// and the directory is fsynced. When any step fails (a full disk, for instance)
// the old file stays and the temporary one is removed.
//
// A file that cannot be understood is never fatal and never deleted: it is renamed
// aside, and what can be salvaged from it is handed out with the reason. What the
// entries mean, and whether pods still live there, is for the daemon to find out.
// One that cannot be read now is left alone and fails the start.
//
// The format is daemon/api/checkpoint's. A Store has one user at a time.
package checkpoint
