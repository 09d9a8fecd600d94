// Package watched makes evidence of a fleet that is watched or was recorded: of the samples of
// all nodes, and of the documents of those that look faulty. It asks for nothing that the
// screens do not ask for, so a recording has it too. What neither has is missing.
package watched
