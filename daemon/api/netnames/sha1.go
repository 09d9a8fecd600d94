package netnames

import (
	"encoding/binary"
	"math/bits"
)

// sum1 computes SHA-1. It is implemented here because linking crypto/sha1 makes every start
// of the plugin initialise a dozen packages for one link name. It is not used for security.
func sum1(text []byte) [20]byte {
	h := [5]uint32{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0}
	length := uint64(len(text)) * 8
	for len(text) >= 64 {
		block1(&h, text[:64])
		text = text[64:]
	}
	var tail [128]byte
	n := copy(tail[:], text)
	tail[n] = 0x80
	size := 64
	if n+1+8 > size {
		size = 128
	}
	binary.BigEndian.PutUint64(tail[size-8:], length)
	block1(&h, tail[:64])
	if size == 128 {
		block1(&h, tail[64:])
	}
	var out [20]byte
	for i, v := range h {
		binary.BigEndian.PutUint32(out[4*i:], v)
	}
	return out
}

func block1(h *[5]uint32, block []byte) {
	var w [80]uint32
	for i := range 16 {
		w[i] = binary.BigEndian.Uint32(block[4*i:])
	}
	for i := 16; i < 80; i++ {
		w[i] = bits.RotateLeft32(w[i-3]^w[i-8]^w[i-14]^w[i-16], 1)
	}
	a, b, c, d, e := h[0], h[1], h[2], h[3], h[4]
	for i := range 80 {
		var f, k uint32
		switch {
		case i < 20:
			f, k = b&c|^b&d, 0x5a827999
		case i < 40:
			f, k = b^c^d, 0x6ed9eba1
		case i < 60:
			f, k = b&c|b&d|c&d, 0x8f1bbcdc
		default:
			f, k = b^c^d, 0xca62c1d6
		}
		a, b, c, d, e = bits.RotateLeft32(a, 5)+f+e+k+w[i], a, bits.RotateLeft32(b, 30), c, d
	}
	h[0] += a
	h[1] += b
	h[2] += c
	h[3] += d
	h[4] += e
}
