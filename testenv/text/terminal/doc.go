// Package terminal runs a program on a pseudo-terminal: it sends keys, keeps what the program
// draws, and returns what a user would see. It answers queries as current terminals do, and
// implements what programs expect of xterm-256color. It displays nothing.
package terminal
