package cniwire

import (
	"encoding/binary"
	"strconv"
)

// kind is the first byte of a message. Fields follow: number (one byte), length of the
// value (uvarint), value. Lists repeat their field. A scalar at its zero value is omitted;
// if one is repeated, the last counts. Readers skip unknown numbers, so a field may be
// added, but a number is never given a second meaning.
type kind uint8

const (
	kindAddRequest kind = 1 // equal to the Kind values, so that a capture reads the same
	kindDelRequest kind = 2
	kindAddReply   kind = 3
	kindDelReply   kind = 4

	kindPolicyRequest kind = 5
	kindPolicyReply   kind = 6

	kindCallError kind = 7
)

type field uint8

func appendText[T string | []byte](b []byte, f field, v T) []byte {
	b = append(b, byte(f))
	b = binary.AppendUvarint(b, uint64(len(v)))
	return append(b, v...)
}

func appendString(b []byte, f field, v string) []byte {
	if v == "" {
		return b
	}
	return appendText(b, f, v)
}

func appendStrings(b []byte, f field, list []string) []byte {
	for _, v := range list {
		b = appendText(b, f, v)
	}
	return b
}

func appendBool(b []byte, f field, v bool) []byte {
	if !v {
		return b
	}
	return append(b, byte(f), 1, 1)
}

func appendInt32(b []byte, f field, v int32) []byte {
	if v == 0 {
		return b
	}
	var value [binary.MaxVarintLen32]byte
	n := binary.PutVarint(value[:], int64(v))
	b = append(b, byte(f), byte(n))
	return append(b, value[:n]...)
}

// reader walks the fields of one message. The first error stops it.
type reader struct {
	rest  []byte
	what  string // name of the message, for errors
	field field
	value []byte
	err   error
}

// next moves to the next field. It returns false at the end and after an error.
func (r *reader) next() bool {
	if r.err != nil || len(r.rest) == 0 {
		return false
	}
	r.field = field(r.rest[0])
	size, n := binary.Uvarint(r.rest[1:])
	if n <= 0 || size > uint64(len(r.rest)-1-n) {
		r.fail("is truncated")
		return false
	}
	r.value = r.rest[1+n : 1+n+int(size)]
	r.rest = r.rest[1+n+int(size):]
	return true
}

func (r *reader) fail(problem string) {
	if r.err == nil {
		r.err = malformed("field " + strconv.Itoa(int(r.field)) + " of " + r.what + " " + problem)
	}
}

func (r *reader) text() string { return string(r.value) }

func (r *reader) bool() bool {
	if len(r.value) != 1 || r.value[0] > 1 {
		r.fail("is not a boolean")
		return false
	}
	return r.value[0] == 1
}

func (r *reader) int32() int32 {
	v, n := binary.Varint(r.value)
	if n <= 0 || n != len(r.value) || v != int64(int32(v)) {
		r.fail("is not a 32-bit integer")
		return 0
	}
	return int32(v)
}
