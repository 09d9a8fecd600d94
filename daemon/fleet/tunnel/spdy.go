package tunnel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// SPDY/3.1 as Kubernetes' peers speak it: without flow control, and with reply headers
// that nobody reads.

// Types of control frames.
const (
	spdySynStream = 1
	spdySynReply  = 2
	spdyReset     = 3
	spdyPing      = 6
	spdyGoAway    = 7
)

const (
	spdyVersion  = 0x8003 // with the bit of a control frame
	spdyFin      = 0x01   // flag: the last frame of the stream in this direction
	spdyCancel   = 5      // status of a reset
	maxStreamID  = 1<<31 - 1
	maxFrameData = 1 << 14 // of one data frame that is sent
	maxControl   = 1 << 20 // bytes of a control frame that is taken
)

var errProtocol = errors.New("the peer does not speak the protocol")

// frame is the head of a frame.
type frame struct {
	control bool
	kind    uint16 // of a control frame
	stream  uint32 // of a data frame
	flags   byte
	length  uint32 // of what follows
}

func readFrame(r io.Reader) (frame, error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	f := frame{flags: head[4], length: binary.BigEndian.Uint32(head[4:]) & 0xffffff}
	if first := binary.BigEndian.Uint32(head[:]); first>>31 == 0 {
		f.stream = first
		return f, nil
	}
	f.control, f.kind = true, binary.BigEndian.Uint16(head[2:])
	if binary.BigEndian.Uint16(head[:]) != spdyVersion {
		return frame{}, fmt.Errorf("%w: a frame of version %#x", errProtocol, binary.BigEndian.Uint16(head[:])&0x7fff)
	}
	if f.length > maxControl {
		return frame{}, fmt.Errorf("%w: a control frame of %d bytes", errProtocol, f.length)
	}
	return f, nil
}

func appendControl(b []byte, kind uint16, flags byte, length int) []byte {
	b = binary.BigEndian.AppendUint16(b, spdyVersion)
	b = binary.BigEndian.AppendUint16(b, kind)
	return binary.BigEndian.AppendUint32(b, uint32(flags)<<24|uint32(length))
}

func appendData(b []byte, stream uint32, flags byte, data []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, stream)
	b = binary.BigEndian.AppendUint32(b, uint32(flags)<<24|uint32(len(data)))
	return append(b, data...)
}

func appendReset(b []byte, stream uint32) []byte {
	b = appendControl(b, spdyReset, 0, 8)
	b = binary.BigEndian.AppendUint32(b, stream)
	return binary.BigEndian.AppendUint32(b, spdyCancel)
}

func appendPing(b []byte, id uint32) []byte {
	return binary.BigEndian.AppendUint32(appendControl(b, spdyPing, 0, 4), id)
}

// headers are names in lower case and values, in turns.
type headers []string

// appendOpen opens a stream. The first of a connection starts its zlib stream.
func appendOpen(b []byte, stream uint32, first bool, h headers) []byte {
	var text []byte
	text = binary.BigEndian.AppendUint32(text, uint32(len(h)/2))
	for _, s := range h {
		text = binary.BigEndian.AppendUint32(text, uint32(len(s)))
		text = append(text, s...)
	}
	packed := store(text, first)
	b = appendControl(b, spdySynStream, 0, 10+len(packed))
	b = binary.BigEndian.AppendUint32(b, stream)
	b = append(b, 0, 0, 0, 0, 0, 0) // of no other stream, in the highest priority
	return append(b, packed...)
}

// store puts a text into the zlib stream of a connection's headers without compressing
// it, which would take a MiB of tables for some hundred bytes.
func store(text []byte, first bool) (out []byte) {
	if first {
		out = append(out, 0x78, 0x01)
	}
	for part := range slices.Chunk(text, 0xffff) {
		out = append(out, 0)
		out = binary.LittleEndian.AppendUint16(out, uint16(len(part)))
		out = binary.LittleEndian.AppendUint16(out, ^uint16(len(part)))
		out = append(out, part...)
	}
	return append(out, 0, 0, 0, 0xff, 0xff) // an empty block makes the reader hand out what it has
}
