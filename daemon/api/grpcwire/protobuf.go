package grpcwire

import (
	"encoding/binary"
	"errors"
	"unicode/utf8"
)

// Wire types of protobuf.
const (
	kindVarint   = 0
	kindFixed64  = 1
	kindBytes    = 2
	kindGroup    = 3
	kindGroupEnd = 4
	kindFixed32  = 5
)

const (
	maxField = 1<<29 - 1
	maxDepth = 10000 // of groups in each other, as the protobuf library has it
)

// ErrMessage: the bytes are no protobuf message of the kind that was asked for.
var ErrMessage = errors.New("message is malformed")

func appendTag(b []byte, field, kind uint64) []byte {
	return binary.AppendUvarint(b, field<<3|kind)
}

func appendString(b []byte, field uint64, v string) []byte {
	if v == "" {
		return b
	}
	b = appendTag(b, field, kindBytes)
	b = binary.AppendUvarint(b, uint64(len(v)))
	return append(b, v...)
}

func appendBool(b []byte, field uint64, v bool) []byte {
	if !v {
		return b
	}
	return append(appendTag(b, field, kindVarint), 1)
}

func appendInt32(b []byte, field uint64, v int32) []byte {
	if v == 0 {
		return b
	}
	return binary.AppendUvarint(appendTag(b, field, kindVarint), uint64(int64(v)))
}

// protoReader walks the fields of one message. The first error stops it. A field of a
// kind that its reader does not expect is skipped, as are fields nobody asks for.
type protoReader struct {
	rest  []byte
	field uint64
	kind  uint64
	value uint64 // of a varint
	bytes []byte
	err   error
}

// next moves to the next field; false at the end and after an error.
func (r *protoReader) next() bool {
	if r.err != nil || len(r.rest) == 0 {
		return false
	}
	if !r.tag() || r.kind == kindGroupEnd || !r.skip(maxDepth) {
		r.err = ErrMessage
		return false
	}
	return true
}

func (r *protoReader) tag() bool {
	tag, ok := r.varint()
	r.field, r.kind = tag>>3, tag&7
	return ok && r.field >= 1 && r.field <= maxField
}

func (r *protoReader) varint() (uint64, bool) {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		return 0, false
	}
	r.rest = r.rest[n:]
	return v, true
}

// skip reads the value of the field.
func (r *protoReader) skip(depth int) (ok bool) {
	switch r.kind {
	case kindVarint:
		r.value, ok = r.varint()
		return ok
	case kindFixed64:
		return r.cut(8)
	case kindFixed32:
		return r.cut(4)
	case kindBytes:
		n, ok := r.varint()
		return ok && r.cut(n)
	case kindGroup:
		return r.group(r.field, depth)
	}
	return false
}

func (r *protoReader) cut(n uint64) bool {
	if n > uint64(len(r.rest)) {
		return false
	}
	r.bytes, r.rest = r.rest[:n], r.rest[n:]
	return true
}

// group reads up to the end of a group that began.
func (r *protoReader) group(number uint64, depth int) bool {
	if depth < 0 {
		return false
	}
	for r.tag() {
		if r.kind == kindGroupEnd {
			ended := r.field == number
			r.field, r.kind = number, kindGroup // not what its last field had
			return ended
		}
		if !r.skip(depth - 1) {
			return false
		}
	}
	return false
}

func (r *protoReader) bool(v *bool) {
	if r.kind == kindVarint {
		*v = r.value != 0
	}
}

func (r *protoReader) int32(v *int32) {
	if r.kind == kindVarint {
		*v = int32(r.value) // the low bits, as the protobuf library does
	}
}

func (r *protoReader) text(v *string) {
	if r.kind != kindBytes {
		return
	}
	if !utf8.Valid(r.bytes) {
		r.err = ErrMessage
		return
	}
	*v = string(r.bytes)
}

func (r *protoReader) texts(all *[]string) {
	if r.kind != kindBytes {
		return
	}
	var v string
	r.text(&v)
	*all = append(*all, v)
}
