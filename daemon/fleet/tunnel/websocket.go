package tunnel

import (
	"bufio"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // what RFC 6455 asks for; it protects nothing
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// The client's side of RFC 6455.

// Opcodes.
const (
	wsContinuation = 0x0
	wsText         = 0x1
	wsBinary       = 0x2
	wsClose        = 0x8
	wsPing         = 0x9
	wsPong         = 0xa
)

const (
	wsFinal      = 0x80
	wsMasked     = 0x80
	maxWSControl = 125 // bytes in a control frame
	wsNormal     = 1000
)

// wsKey is a new key of a handshake.
func wsKey() string {
	var key [16]byte
	rand.Read(key[:])
	return base64.StdEncoding.EncodeToString(key[:])
}

// wsAccepts reports whether an answer belongs to a key.
func wsAccepts(h http.Header, key string) bool {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) //nolint:gosec // see the import
	return h.Get("Sec-WebSocket-Accept") == base64.StdEncoding.EncodeToString(sum[:]) &&
		strings.EqualFold(h.Get("Upgrade"), "websocket")
}

// appendWS appends a frame of one piece.
func appendWS(b []byte, opcode byte, payload []byte) []byte {
	b = append(b, wsFinal|opcode)
	switch n := len(payload); {
	case n <= 125:
		b = append(b, wsMasked|byte(n))
	case n <= 0xffff:
		b = binary.BigEndian.AppendUint16(append(b, wsMasked|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, wsMasked|127), uint64(n))
	}
	var mask [4]byte
	rand.Read(mask[:])
	b = append(b, mask[:]...)
	from := len(b)
	b = append(b, payload...)
	for i := range b[from:] {
		b[from+i] ^= mask[i&3]
	}
	return b
}

// wsReader reads the payloads of binary messages one after another.
type wsReader struct {
	r       *bufio.Reader
	answer  func(opcode byte, payload []byte) error // writes a control frame
	left    uint64                                  // of the frame that is being read
	within  bool                                    // a message whose last frame has not begun
	started bool                                    // set when a message begins; for who cares
}

// Read reads from the current frame, or the next that has something. A close frame is
// io.EOF.
func (w *wsReader) Read(p []byte) (int, error) {
	for w.left == 0 {
		if err := w.next(); err != nil {
			return 0, err
		}
	}
	n, err := w.r.Read(p[:min(uint64(len(p)), w.left)])
	w.left -= uint64(n)
	if errors.Is(err, io.EOF) && w.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// next reads the head of a frame, and the whole of a control frame.
func (w *wsReader) next() error {
	var head [8]byte
	if _, err := io.ReadFull(w.r, head[:2]); err != nil {
		return err
	}
	final, opcode, length := head[0]&wsFinal != 0, head[0]&0x0f, uint64(head[1]&0x7f)
	if head[0]&0x70 != 0 || head[1]&wsMasked != 0 {
		return fmt.Errorf("%w: WebSocket frame %#x %#x", errProtocol, head[0], head[1])
	}
	if opcode >= wsClose {
		return w.control(opcode, final, length)
	}
	switch {
	case length == 126:
		if _, err := io.ReadFull(w.r, head[:2]); err != nil {
			return err
		}
		length = uint64(binary.BigEndian.Uint16(head[:]))
	case length == 127:
		if _, err := io.ReadFull(w.r, head[:]); err != nil {
			return err
		}
		length = binary.BigEndian.Uint64(head[:])
	}
	switch {
	case opcode == wsBinary && !w.within, opcode == wsContinuation && w.within:
	default:
		return fmt.Errorf("%w: WebSocket message of type %d", errProtocol, opcode)
	}
	w.started = opcode == wsBinary
	w.left, w.within = length, !final
	return nil
}

func (w *wsReader) control(opcode byte, final bool, length uint64) error {
	if !final || length > maxWSControl {
		return fmt.Errorf("%w: WebSocket control frame of %d bytes", errProtocol, length)
	}
	var payload [maxWSControl]byte
	if _, err := io.ReadFull(w.r, payload[:length]); err != nil {
		return err
	}
	switch opcode {
	case wsPing:
		return w.answer(wsPong, payload[:length])
	case wsPong:
		return nil
	case wsClose:
		if length > 2 && binary.BigEndian.Uint16(payload[:]) != wsNormal {
			return fmt.Errorf("the API server closed the tunnel: %.100q", payload[2:length])
		}
		return io.EOF
	}
	return fmt.Errorf("%w: WebSocket opcode %d", errProtocol, opcode)
}

// message reads one whole message of at most limit bytes.
func (w *wsReader) message(limit int) ([]byte, error) {
	for {
		if err := w.next(); err != nil {
			return nil, err
		}
		if w.started {
			break
		}
		// A control frame, or an empty continuation; a message is begun by its first frame.
	}
	return w.rest(limit)
}

// rest reads the message whose first frame has begun.
func (w *wsReader) rest(limit int) (out []byte, err error) {
	for {
		if w.left > uint64(limit-len(out)) {
			return nil, fmt.Errorf("%w: WebSocket message of more than %d bytes", errProtocol, limit)
		}
		from := len(out)
		out = append(out, make([]byte, w.left)...)
		if _, err := io.ReadFull(w.r, out[from:]); err != nil {
			return nil, err
		}
		w.left = 0
		if !w.within {
			w.started = false
			return out, nil
		}
		if err := w.next(); err != nil {
			return nil, err
		}
	}
}
