// Package situation reads situations: a short language, for tests, that describes a cluster by its
// true state, the world, and by what was read of it, the sources. With base: healthy a source that
// is not named shows what a healthy node would show in that world; with base: none it was not read.
// Times may count back from the reading. "later" has what differs at the second reading, "nodes"
// several nodes, and lists of sources can be edited: {without: […], with: […]}. Each rejection
// names the line, the member and what would be accepted.
//
// It does no I/O: bytes in, evidence out.
package situation
