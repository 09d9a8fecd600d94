// Package watched makes evidence of a watched or recorded fleet: of the samples of all nodes, and
// of the documents of those that look faulty. It requests only what the screens request, so a
// recording has it too. Everything else is missing.
package watched
