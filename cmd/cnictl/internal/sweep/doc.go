// Package sweep reads nodes once: all of them with progress on standard error, or one,
// and fails the command if some could not be read. Continuous reading is package follow.
package sweep
