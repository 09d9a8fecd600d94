package netns

import (
	"errors"

	"github.com/vishvananda/netlink"
)

// Dump repeats a netlink dump that a concurrent change interrupted. Each try reads the whole
// list; if the namespace keeps changing, Dump returns the result of the last try.
func Dump[T any](list func() ([]T, error)) (out []T, err error) {
	for range 100 {
		if out, err = list(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			return out, err
		}
	}
	return out, err
}
