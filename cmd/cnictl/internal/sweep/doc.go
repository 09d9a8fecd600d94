// Package sweep reads nodes once: all of them with progress on standard error, or one, and
// ends the command where some could not be read. What goes on is follow's.
package sweep
