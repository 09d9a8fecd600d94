// Package reading is what the pages know of a node by asking it: documents that are read
// again while they are looked at, how old they are, and the words for what could not be
// read. It asks through messages and waits for nothing.
package reading
