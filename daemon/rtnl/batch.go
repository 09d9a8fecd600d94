package rtnl

import "golang.org/x/sys/unix"

// Batch is a sequence of changes. The zero value is ready; Reset makes it reusable. It must
// stay below the kernel's send buffer (some hundred messages).
type Batch struct {
	buf  []byte
	msgs []message
}

type message struct {
	op        string
	start     int
	tolerated unix.Errno
	errno     unix.Errno
	detail    string // the kernel's message, if any
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() { b.buf, b.msgs = b.buf[:0], b.msgs[:0] }

// Len is the number of messages.
func (b *Batch) Len() int { return len(b.msgs) }

// Tolerate makes one errno of the most recently added message count as success, for
// instance EEXIST of a rule. Errno still returns it.
func (b *Batch) Tolerate(errno unix.Errno) { b.msgs[len(b.msgs)-1].tolerated = errno }

// Errno returns the kernel's answer to message i of a sent batch: 0 for success. It also
// returns a tolerated errno.
func (b *Batch) Errno(i int) unix.Errno { return b.msgs[i].errno }

// begin starts a message; end sets its length. The sequence number is set when it is sent.
func (b *Batch) begin(op string, kind, flags uint16) {
	b.msgs = append(b.msgs, message{op: op, start: len(b.buf)})
	b.buf = appendU32(b.buf, 0)
	b.buf = appendU16(b.buf, kind)
	b.buf = appendU16(b.buf, unix.NLM_F_REQUEST|flags)
	b.buf = appendU32(b.buf, 0) // sequence
	b.buf = appendU32(b.buf, 0) // port: the kernel fills it in
}

func (b *Batch) end() {
	start := b.msgs[len(b.msgs)-1].start
	native.PutUint32(b.buf[start:], uint32(len(b.buf)-start))
}

// seal numbers the messages and requests an answer to the last.
func (b *Batch) seal(first uint32) {
	for i := range b.msgs {
		native.PutUint32(b.buf[b.msgs[i].start+8:], first+uint32(i))
		b.msgs[i].errno, b.msgs[i].detail = 0, ""
	}
	last := b.buf[b.msgs[len(b.msgs)-1].start:]
	native.PutUint16(last[6:], native.Uint16(last[6:])|unix.NLM_F_ACK)
}

// failure returns the first message that failed with an errno that is not tolerated.
func (b *Batch) failure() error {
	for i := range b.msgs {
		m := &b.msgs[i]
		if m.errno != 0 && m.errno != m.tolerated {
			return &Error{Op: m.op, Index: i, Errno: m.errno, Detail: m.detail}
		}
	}
	return nil
}

// Error is a change that the kernel refused.
type Error struct {
	Op     string // "add route", "create veth pair", ...
	Index  int    // position in the batch
	Errno  unix.Errno
	Detail string // the kernel's explanation; may be empty
}

func (e *Error) Error() string {
	text := e.Op + ": " + e.Errno.Error()
	if e.Detail != "" {
		text += " (" + e.Detail + ")"
	}
	return text
}

func (e *Error) Unwrap() error { return e.Errno }
