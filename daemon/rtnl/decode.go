package rtnl

import (
	"bytes"
	"errors"

	"golang.org/x/sys/unix"
)

// reply is one netlink message from the kernel. body aliases the receive buffer.
type reply struct {
	kind, flags uint16
	seq         uint32
	body        []byte
}

var errShort = errors.New("rtnetlink response is truncated")

func cutMessage(b []byte) (reply, []byte, error) {
	if len(b) < unix.SizeofNlMsghdr {
		return reply{}, nil, errShort
	}
	size := int(native.Uint32(b))
	if size < unix.SizeofNlMsghdr || size > len(b) {
		return reply{}, nil, errShort
	}
	r := reply{
		kind:  native.Uint16(b[4:]),
		flags: native.Uint16(b[6:]),
		seq:   native.Uint32(b[8:]),
		body:  b[unix.SizeofNlMsghdr:size],
	}
	return r, b[min(len(b), (size+align-1)&^(align-1)):], nil
}

// errno reads an NLMSG_ERROR or NLMSG_DONE message.
func (r reply) errno() (unix.Errno, string, error) {
	if len(r.body) < 4 {
		return 0, "", errShort
	}
	errno := unix.Errno(-int32(native.Uint32(r.body)))
	if errno == 0 || r.flags&unix.NLM_F_ACK_TLVS == 0 || r.kind != unix.NLMSG_ERROR {
		return errno, "", nil
	}
	skip := 4 + unix.SizeofNlMsghdr
	if r.flags&unix.NLM_F_CAPPED == 0 && len(r.body) >= 8 {
		skip = 4 + int(native.Uint32(r.body[4:])) // the request is returned whole
	}
	var detail string
	if skip <= len(r.body) {
		_ = eachAttr(r.body[skip:], func(kind uint16, value []byte) {
			if kind == unix.NLMSGERR_ATTR_MSG {
				detail = text(value)
			}
		})
	}
	return errno, detail, nil
}

// kindMask removes the nested and byte order flags of an attribute's kind.
const kindMask = 0x3fff

// eachAttr calls fn for each attribute, with the flags of its kind removed.
func eachAttr(b []byte, fn func(kind uint16, value []byte)) error {
	for len(b) >= unix.SizeofRtAttr {
		kind, value, rest, err := cutAttr(b)
		if err != nil {
			return err
		}
		fn(kind, value)
		b = rest
	}
	return nil
}

// cutAttr returns the first attribute of b, which holds at least the header of one.
func cutAttr(b []byte) (kind uint16, value, rest []byte, _ error) {
	size := int(native.Uint16(b))
	if size < unix.SizeofRtAttr || size > len(b) {
		return 0, nil, nil, errShort
	}
	return native.Uint16(b[2:]) & kindMask, b[unix.SizeofRtAttr:size], b[min(len(b), (size+align-1)&^(align-1)):], nil
}

func text(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

func u32(b []byte) uint32 {
	if len(b) < 4 {
		return 0
	}
	return native.Uint32(b)
}
