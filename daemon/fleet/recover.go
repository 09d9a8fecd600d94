package fleet

import (
	"fmt"
	"runtime/debug"

	"cnictl/daemon/api/introspect"
)

// Panic is a failure of this program while it read a node, most likely because it misread
// the node's answer. It becomes an error of that node, so that the other nodes are still
// read and the terminal is restored.
type Panic struct {
	Value any    // the value passed to panic
	Stack []byte // of the goroutine
}

func (p *Panic) Error() string {
	return fmt.Sprintf("cnictl crashed on a node's data: %v; this is a bug in cnictl: please report it with the node's responses (cnictl node raw NODE)", p.Value)
}

// NodeReason classifies it as an unusable answer.
func (p *Panic) NodeReason() introspect.Reason { return introspect.ReasonMalformed }

// Recover calls f and returns a panic in it as an error. Every goroutine wraps its work in
// it, since an unrecovered panic in any goroutine ends the process.
func Recover[T any](f func() (T, error)) (_ T, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Panic{v, debug.Stack()}
		}
	}()
	return f()
}
