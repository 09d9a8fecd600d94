//go:build race

package uml

// raceDetector tells that the program is built with it. The guest's kernel has no room for
// the memory that it wants at fixed addresses.
const raceDetector = true
