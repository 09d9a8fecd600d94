package fleet

import (
	"fmt"
	"runtime/debug"

	"cnictl/daemon/api/introspect"
)

// Panic is a failure of this program itself while it read a node: the node's answer, most
// likely, is one that it takes for something else. It is an error of that node, so that
// the others are read on and a terminal is given back as it was.
type Panic struct {
	Value any    // what was panicked with
	Stack []byte // of the goroutine
}

func (p *Panic) Error() string {
	return fmt.Sprintf("cnictl crashed on a node's data: %v; this is a bug in cnictl: please report it with the node's responses (cnictl node raw NODE)", p.Value)
}

// NodeReason is that of an answer that cannot be used.
func (p *Panic) NodeReason() introspect.Reason { return introspect.ReasonMalformed }

// Recover calls f and returns a panic in it as an error. Every goroutine wraps its work in
// it, since a panic that leaves a goroutine ends the process at once.
func Recover[T any](f func() (T, error)) (_ T, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Panic{v, debug.Stack()}
		}
	}()
	return f()
}
