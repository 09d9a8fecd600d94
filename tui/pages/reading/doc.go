// Package reading holds what the pages read from a node: documents that are refreshed while
// they are shown, their age, and the words for what could not be read. It requests them
// through messages and never blocks.
package reading
