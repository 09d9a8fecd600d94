package grpcwire

import "encoding/binary"

// Frames of HTTP/2 (RFC 9113 §6).
const (
	frameData         = 0
	frameHeaders      = 1
	framePriority     = 2
	frameReset        = 3
	frameSettings     = 4
	framePush         = 5
	framePing         = 6
	frameGoAway       = 7
	frameWindow       = 8
	frameContinuation = 9

	flagEndStream  = 0x1 // of DATA and HEADERS
	flagAck        = 0x1 // of SETTINGS and PING
	flagEndHeaders = 0x4
	flagPadded     = 0x8
	flagPriority   = 0x20

	settingPush          = 2
	settingInitialWindow = 4
	settingHeaderList    = 6

	resetFlowControl = 3
	resetRefused     = 7
	resetCancel      = 8
	resetCalm        = 11
	resetSecurity    = 12

	frameHead     = 9       // bytes before the payload
	maxFrame      = 1 << 14 // of a payload; neither side may exceed it unasked
	defaultWindow = 1<<16 - 1
	maxWindow     = 1<<31 - 1

	preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
)

// frame is one frame of the server. Its payload is a part of the input.
type frame struct {
	kind    byte
	flags   byte
	stream  uint32
	payload []byte
}

// cutFrame takes the first frame from b. ok is false when b does not hold all of it.
func cutFrame(b []byte) (f frame, rest []byte, ok bool, err *Status) {
	if len(b) < frameHead {
		return f, b, false, nil
	}
	size := int(b[0])<<16 | int(b[1])<<8 | int(b[2])
	if size > maxFrame {
		return f, b, false, Broken("http2: frame too large")
	}
	if len(b) < frameHead+size {
		return f, b, false, nil
	}
	f = frame{kind: b[3], flags: b[4], stream: binary.BigEndian.Uint32(b[5:]) & maxWindow, payload: b[frameHead : frameHead+size]}
	return f, b[frameHead+size:], true, nil
}

// unpadded is the payload less its padding. false: the padding exceeds it.
func (f frame) unpadded() ([]byte, bool) {
	if f.flags&flagPadded == 0 {
		return f.payload, true
	}
	if len(f.payload) == 0 || int(f.payload[0]) > len(f.payload)-1 {
		return nil, false
	}
	return f.payload[1 : len(f.payload)-int(f.payload[0])], true
}

func appendFrame(b []byte, kind, flags byte, stream uint32, payload []byte) []byte {
	n := len(payload)
	b = append(b, byte(n>>16), byte(n>>8), byte(n), kind, flags)
	b = binary.BigEndian.AppendUint32(b, stream)
	return append(b, payload...)
}

func appendSetting(b []byte, id uint16, value uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(b, id), value)
}
