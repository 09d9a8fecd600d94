// Package terminal runs a program on a pseudo-terminal: it presses keys, keeps what the
// program draws, and says what a user would see. It answers the questions of programs as
// present terminals do, and knows of terminals what a program that announces xterm-256color
// needs; it is no terminal to look at.
package terminal
