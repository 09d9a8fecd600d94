package tunnel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// The part of SPDY/3.1 that a forwarded port needs, as the peers of Kubernetes speak it: without
// flow control and without the headers of replies.

// Types of control frames.
const (
	frameOpen    = 1 // SYN_STREAM
	frameReply   = 2 // SYN_REPLY
	frameReset   = 3 // RST_STREAM
	framePing    = 6
	frameGoAway  = 7
	frameHeaders = 8
)

const (
	frameVersion = 0x8003 // including the control bit
	flagFin      = 0x01   // last frame of the stream in this direction
	protocolErr  = 1      // status codes of a reset
	cancelled    = 5
	maxStreamID  = 1<<31 - 1
	// maxData limits a sent data frame so that it fits into one WebSocket frame.
	maxData = webSocketBuffer - 64
)

var errProtocol = errors.New("the peer does not speak the tunnel protocol")

// frameHead is the header of a frame.
type frameHead struct {
	control bool
	kind    uint16 // if control
	stream  uint32 // if not control
	flags   byte
	length  int // bytes after the header
}

// readHead reads the header of a frame, using room, which has 8 bytes.
func readHead(r io.Reader, room []byte) (frameHead, error) {
	if _, err := io.ReadFull(r, room); err != nil {
		return frameHead{}, err
	}
	first, second := binary.BigEndian.Uint32(room), binary.BigEndian.Uint32(room[4:])
	h := frameHead{flags: byte(second >> 24), length: int(second & 0xffffff)}
	if first>>31 == 0 {
		h.stream = first
		return h, nil
	}
	h.control, h.kind = true, uint16(first)
	switch {
	case first>>16 != frameVersion:
		return h, fmt.Errorf("%w: a frame of version %d", errProtocol, first>>16&0x7fff)
	case h.length > maxControl:
		return h, fmt.Errorf("%w: a control frame of %d bytes", errProtocol, h.length)
	case h.about() && h.length < 4:
		return h, fmt.Errorf("%w: a control frame of type %d and %d bytes", errProtocol, h.kind, h.length)
	}
	return h, nil
}

// about reports whether a control frame begins with a stream ID or a ping ID that is needed.
func (h frameHead) about() bool {
	switch h.kind {
	case frameOpen, frameReply, frameReset, frameHeaders, framePing:
		return true
	}
	return false
}

func appendControl(b []byte, kind uint16, flags byte, length int) []byte {
	b = binary.BigEndian.AppendUint16(b, frameVersion)
	b = binary.BigEndian.AppendUint16(b, kind)
	return binary.BigEndian.AppendUint32(b, uint32(flags)<<24|uint32(length))
}

func appendData(b []byte, stream uint32, flags byte, data []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, stream)
	b = binary.BigEndian.AppendUint32(b, uint32(flags)<<24|uint32(len(data)))
	return append(b, data...)
}

func appendReset(b []byte, stream, status uint32) []byte {
	b = appendControl(b, frameReset, 0, 8)
	b = binary.BigEndian.AppendUint32(b, stream)
	return binary.BigEndian.AppendUint32(b, status)
}

func appendPing(b []byte, id uint32) []byte {
	return binary.BigEndian.AppendUint32(appendControl(b, framePing, 0, 4), id)
}

// appendOpen opens a stream with headers: alternating lower-case names and values. The first one
// of a connection starts its zlib stream.
func appendOpen(b []byte, stream uint32, first bool, headers ...string) []byte {
	text := binary.BigEndian.AppendUint32(nil, uint32(len(headers)/2))
	for _, s := range headers {
		text = binary.BigEndian.AppendUint32(text, uint32(len(s)))
		text = append(text, s...)
	}
	packed := appendStored(nil, text, first)
	b = appendControl(b, frameOpen, 0, 10+len(packed))
	b = binary.BigEndian.AppendUint32(b, stream)
	b = append(b, 0, 0, 0, 0, 0, 0) // no associated stream, highest priority
	return append(b, packed...)
}

// zlibHead starts the zlib stream of a connection's headers: a window of 32 KiB, the lowest
// level, and the Adler-32 of SPDY/3's dictionary; nothing of that is used.
var zlibHead = []byte{0x78, 0x20, 0xe3, 0xc6, 0xa7, 0xc2}

// appendStored adds a text to the zlib stream of a connection's headers, uncompressed: compression
// would take tables of 0.8 MiB for a few hundred bytes.
func appendStored(b, text []byte, first bool) []byte {
	if first {
		b = append(b, zlibHead...)
	}
	for part := range slices.Chunk(text, 0xffff) {
		b = append(b, 0)
		b = binary.LittleEndian.AppendUint16(b, uint16(len(part)))
		b = binary.LittleEndian.AppendUint16(b, ^uint16(len(part)))
		b = append(b, part...)
	}
	return append(b, 0, 0, 0, 0xff, 0xff) // an empty block makes the reader flush
}
