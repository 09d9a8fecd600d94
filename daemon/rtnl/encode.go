package rtnl

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

var native = binary.NativeEndian

const align = unix.NLMSG_ALIGNTO

func appendU16(b []byte, v uint16) []byte { return native.AppendUint16(b, v) }
func appendU32(b []byte, v uint32) []byte { return native.AppendUint32(b, v) }

func pad(b []byte) []byte {
	for len(b)%align != 0 {
		b = append(b, 0)
	}
	return b
}

// attr appends one attribute.
func (b *Batch) attr(kind uint16, value []byte) {
	b.buf = appendU16(b.buf, uint16(unix.SizeofRtAttr+len(value)))
	b.buf = appendU16(b.buf, kind)
	b.buf = pad(append(b.buf, value...))
}

// attrText appends a NUL-terminated string.
func (b *Batch) attrText(kind uint16, s string) {
	b.buf = appendU16(b.buf, uint16(unix.SizeofRtAttr+len(s)+1))
	b.buf = appendU16(b.buf, kind)
	b.buf = append(b.buf, s...)
	b.buf = pad(append(b.buf, 0))
}

func (b *Batch) attrU32(kind uint16, v uint32) {
	b.buf = appendU16(b.buf, unix.SizeofRtAttr+4)
	b.buf = appendU16(b.buf, kind)
	b.buf = appendU32(b.buf, v)
}

func (b *Batch) attrAddr(kind uint16, a netip.Addr) {
	if a.Is4() {
		v := a.As4()
		b.attr(kind, v[:])
		return
	}
	v := a.As16()
	b.attr(kind, v[:])
}

// nest opens an attribute that contains attributes; endNest closes it.
func (b *Batch) nest(kind uint16) (start int) {
	start = len(b.buf)
	b.buf = appendU16(b.buf, 0)
	b.buf = appendU16(b.buf, kind)
	return start
}

func (b *Batch) endNest(start int) {
	native.PutUint16(b.buf[start:], uint16(len(b.buf)-start))
}

func (b *Batch) ifinfo(index int32, flags, change uint32) {
	b.buf = append(b.buf, unix.AF_UNSPEC, 0, 0, 0)
	b.buf = appendU32(b.buf, uint32(index))
	b.buf = appendU32(b.buf, flags)
	b.buf = appendU32(b.buf, change)
}

// Family returns the family of an address, unix.AF_INET or unix.AF_INET6.
func Family(a netip.Addr) uint8 {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}
