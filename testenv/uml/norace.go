//go:build !race

package uml

// raceDetector tells that the program is built with it.
const raceDetector = false
