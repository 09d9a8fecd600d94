package skel

import (
	"errors"
	"io"

	"golang.org/x/sys/unix"
)

// Stream is a standard stream, by its descriptor. The os package would cost a plugin's
// start more than everything it would be used for.
type Stream int

// The standard streams.
const (
	Stdin Stream = iota
	Stdout
	Stderr
)

// Read reads what is available.
func (s Stream) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(int(s), b)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case n == 0 && len(b) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// Write writes as much as the stream accepts at once.
func (s Stream) Write(b []byte) (int, error) {
	n, err := unix.Write(int(s), b)
	return max(n, 0), err
}
