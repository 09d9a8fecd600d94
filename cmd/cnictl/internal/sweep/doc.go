// Package sweep reads nodes once: all of them, with progress on standard error, or a single
// one. It fails the command if some could not be read. Continuous reading is in package
// follow.
package sweep
