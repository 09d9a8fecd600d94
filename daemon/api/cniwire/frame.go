package cniwire

import (
	"encoding/binary"
	"errors"
	"io"
)

// Sockets of a node.
const (
	Socket       = "/var/run/aws-node/cni.sock"   // the daemon's, for the plugin
	GRPCSocket   = "/var/run/aws-node/ipamd.sock" // the daemon's and upstream's, for gRPC
	PolicySocket = "/var/run/aws-node/npa.sock"   // the network policy agent's, since its v1.2.6
)

// MaxFrame bounds one request or reply without its length prefix, in bytes. The largest
// legitimate message (a reply with every CIDR of a VPC) is below 4 KiB.
const MaxFrame = 64 << 10

const prefixSize = 4 // length of the body, big-endian

var (
	// ErrFrameTooLarge: the peer announced more than MaxFrame bytes.
	ErrFrameTooLarge = errors.New("frame exceeds 65536 bytes")
	// ErrMalformed: the bytes are not a message of this protocol. Errors of the Decode
	// functions wrap it and name the field.
	ErrMalformed = errors.New("malformed message")
)

// malformed describes a malformed message. It wraps ErrMalformed without fmt, which the
// plugin does not link.
type malformed string

func (m malformed) Error() string { return ErrMalformed.Error() + ": " + string(m) }
func (m malformed) Unwrap() error { return ErrMalformed }

// ReadFrame reads one frame and returns it without its length prefix. It uses buf if buf is
// large enough. io.EOF means that the peer closed before the first byte,
// io.ErrUnexpectedEOF that it closed later.
func ReadFrame(r io.Reader, buf []byte) ([]byte, error) {
	var prefix [prefixSize]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return nil, err
	}
	size := int(binary.BigEndian.Uint32(prefix[:]))
	if size > MaxFrame {
		return nil, ErrFrameTooLarge
	}
	if cap(buf) < size {
		buf = make([]byte, size)
	}
	buf = buf[:size]
	if _, err := io.ReadFull(r, buf); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return buf, nil
}

// CutFrame is ReadFrame for a caller that does its own reading: it returns the first frame
// in b, without its prefix, or nil while b does not hold all of it.
func CutFrame(b []byte) ([]byte, error) {
	if len(b) < prefixSize {
		return nil, nil
	}
	size := binary.BigEndian.Uint32(b)
	if size > MaxFrame {
		return nil, ErrFrameTooLarge
	}
	if len(b) < prefixSize+int(size) {
		return nil, nil
	}
	return b[prefixSize : prefixSize+int(size) : prefixSize+int(size)], nil
}

// beginFrame appends room for the length prefix and the kind of the message.
func beginFrame(b []byte, k kind) (_ []byte, start int) {
	start = len(b)
	return append(b, 0, 0, 0, 0, byte(k)), start
}

// endFrame fills in the length. It does not check MaxFrame: the peer refuses a longer
// message with ErrFrameTooLarge.
func endFrame(b []byte, start int) []byte {
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-prefixSize))
	return b
}
