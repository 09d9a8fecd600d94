package netns

import (
	"errors"

	"github.com/vishvananda/netlink"
)

// Dump repeats a netlink dump that a change interrupted. Each try reads the whole list, so in
// a namespace that never rests the last one has to do.
func Dump[T any](list func() ([]T, error)) (out []T, err error) {
	for range 100 {
		if out, err = list(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			return out, err
		}
	}
	return out, err
}
