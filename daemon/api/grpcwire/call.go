package grpcwire

import (
	"encoding/binary"
	"errors"
	"strconv"
	"time"
)

const (
	// MaxMessage bounds a reply. The largest honest one is below 4 KiB.
	MaxMessage = 256 << 10

	// window is what the server may send of messages, once and for all: the client
	// never grants more. It has room for padding.
	window = MaxMessage + 64<<10
	// maxInput bounds all that a server may send, since frames that carry nothing
	// take no window.
	maxInput = 1 << 20

	messageHead = 5 // compressed or not, and the length
	stream      = 1 // of the only request
)

// ErrUnprocessed: the server took the connection and said that it will not have looked
// at the request, since it is ending. Another connection may do.
var ErrUnprocessed = errors.New("the stream is rejected because server is draining the connection")

// Request is one unary call.
type Request struct {
	Method    string // "/package.Service/Method"
	UserAgent string
	Timeout   time.Duration // told to the server; 0: none
	Message   []byte
}

// Call is the client's half of a unary call on a connection of its own. Its user writes
// what Output has, reads, and hands what it read to Input, until that is done.
type Call struct {
	out    []byte
	unsent []byte // of the message, for which the server has granted no window yet
	in     []byte // a frame that is not complete
	got    int    // bytes of input

	connWindow, streamWindow, initialWindow int64 // what may be sent

	hpack     hpackDecoder
	block     []byte // headers that are not complete
	blockOpen bool
	blockEnds bool // the stream ends with them

	greeted  bool // the server's settings came
	answered bool // its headers did
	received int  // bytes of DATA frames
	reply    []byte

	done bool
	err  error
}

// NewCall begins a call.
func NewCall(r Request) *Call {
	c := &Call{connWindow: defaultWindow, streamWindow: defaultWindow, initialWindow: defaultWindow, hpack: newHPACKDecoder()}
	var settings [3 * 6]byte
	set := appendSetting(settings[:0], settingPush, 0)
	set = appendSetting(set, settingInitialWindow, window)
	set = appendSetting(set, settingHeaderList, maxHeaderList)
	c.out = append(make([]byte, 0, 512+len(r.Message)), preface...)
	c.out = appendFrame(c.out, frameSettings, 0, 0, set)
	c.out = appendFrame(c.out, frameWindow, 0, 0, binary.BigEndian.AppendUint32(nil, window-defaultWindow))
	c.sendHeaders(r)
	c.unsent = binary.BigEndian.AppendUint32(append(make([]byte, 0, messageHead+len(r.Message)), 0), uint32(len(r.Message)))
	c.unsent = append(c.unsent, r.Message...)
	c.send()
	return c
}

func (c *Call) sendHeaders(r Request) {
	b := make([]byte, 0, 256)
	b = appendHeader(b, ":method", "POST")
	b = appendHeader(b, ":scheme", "http")
	b = appendHeader(b, ":path", r.Method)
	b = appendHeader(b, ":authority", "localhost")
	b = appendHeader(b, "content-type", "application/grpc")
	b = appendHeader(b, "user-agent", r.UserAgent)
	b = appendHeader(b, "te", "trailers")
	if r.Timeout > 0 {
		b = appendHeader(b, "grpc-timeout", timeoutText(r.Timeout))
	}
	kind := byte(frameHeaders)
	for len(b) > maxFrame {
		c.out = appendFrame(c.out, kind, 0, stream, b[:maxFrame])
		b, kind = b[maxFrame:], frameContinuation
	}
	c.out = appendFrame(c.out, kind, flagEndHeaders, stream, b)
}

// timeoutText has at most eight digits, as the protocol asks.
func timeoutText(d time.Duration) string {
	const most = 99_999_999
	if us := (d + time.Microsecond - 1) / time.Microsecond; us <= most {
		return strconv.FormatInt(int64(us), 10) + "u"
	}
	return strconv.FormatInt(min(int64(d/time.Millisecond), most), 10) + "m"
}

// send moves to the output what the windows allow of the message.
func (c *Call) send() {
	for len(c.unsent) > 0 {
		n := min(int64(len(c.unsent)), c.connWindow, c.streamWindow, maxFrame)
		if n <= 0 {
			return
		}
		var flags byte
		if n == int64(len(c.unsent)) {
			flags = flagEndStream
		}
		c.out = appendFrame(c.out, frameData, flags, stream, c.unsent[:n])
		c.unsent = c.unsent[n:]
		c.connWindow -= n
		c.streamWindow -= n
	}
}

// Output is what is to be written before the next read. It is valid until the next call.
func (c *Call) Output() []byte {
	out := c.out
	c.out = c.out[:0]
	return out
}

// Done reports that there is nothing more to read.
func (c *Call) Done() bool { return c.done }

// Result is the reply of a call that is done. Errors are a *[Status] or [ErrUnprocessed].
func (c *Call) Result() ([]byte, error) {
	if c.err != nil {
		return nil, c.err
	}
	return c.reply, nil
}

// End says that no more input comes, and why: the connection is closed, or broken.
func (c *Call) End(why string) {
	switch {
	case !c.greeted:
		c.fail(Broken("error reading server preface: " + why))
	default:
		c.fail(&Status{CodeUnavailable, "error reading from server: " + why})
	}
}

func (c *Call) fail(err error) {
	if !c.done {
		c.done, c.err = true, err
	}
}

// protocolError ends the call because the server breaks the protocol.
func (c *Call) protocolError(what string) {
	c.fail(&Status{CodeUnavailable, "error reading from server: " + what})
}

// Input takes what the server sent, in pieces of any size.
func (c *Call) Input(b []byte) {
	if c.got += len(b); c.got > maxInput {
		c.protocolError("it sends more than any call needs")
	}
	c.in = append(c.in, b...)
	rest := c.in
	for !c.done {
		var f frame
		var ok bool
		var err *Status
		if f, rest, ok, err = cutFrame(rest); err != nil {
			c.fail(err)
		}
		if !ok {
			break
		}
		c.take(f)
	}
	c.in = append(c.in[:0], rest...)
}

func (c *Call) take(f frame) {
	if !c.greeted && (f.kind != frameSettings || f.flags&flagAck != 0) {
		c.fail(Broken("error reading server preface: the first frame is not SETTINGS"))
		return
	}
	if c.blockOpen && f.kind != frameContinuation {
		c.protocolError("headers are interrupted")
		return
	}
	ofStream := f.kind == frameData || f.kind == frameHeaders || f.kind == frameReset || f.kind == frameContinuation
	if ofStream && f.stream != stream {
		c.protocolError("a frame is of a stream that nobody opened")
		return
	}
	switch f.kind {
	case frameData:
		c.data(f)
	case frameHeaders:
		c.headers(f)
	case frameContinuation:
		if !c.blockOpen {
			c.protocolError("headers are continued that are complete")
			return
		}
		c.headerBlock(f, f.payload)
	case frameReset:
		c.reset(f)
	case frameSettings:
		c.settings(f)
	case framePing:
		c.ping(f)
	case frameGoAway:
		c.goAway(f)
	case frameWindow:
		c.windowUpdate(f)
	case framePush:
		c.protocolError("it pushes although push is disabled")
	case framePriority: // advice
	default: // RFC 9113 §4.1: to be ignored
	}
}

func (c *Call) settings(f frame) {
	if f.stream != 0 || len(f.payload)%6 != 0 || f.flags&flagAck != 0 && len(f.payload) > 0 {
		c.protocolError("SETTINGS are malformed")
		return
	}
	c.greeted = true
	if f.flags&flagAck != 0 {
		return
	}
	for p := f.payload; len(p) > 0; p = p[6:] {
		if binary.BigEndian.Uint16(p) != settingInitialWindow {
			continue
		}
		size := int64(binary.BigEndian.Uint32(p[2:]))
		if size > maxWindow {
			c.protocolError("SETTINGS have a window that is too large")
			return
		}
		c.streamWindow += size - c.initialWindow
		c.initialWindow = size
	}
	c.out = appendFrame(c.out, frameSettings, flagAck, 0, nil)
	c.send()
}

func (c *Call) ping(f frame) {
	if f.stream != 0 || len(f.payload) != 8 {
		c.protocolError("a PING is malformed")
		return
	}
	if f.flags&flagAck == 0 {
		c.out = appendFrame(c.out, framePing, flagAck, 0, f.payload)
	}
}

func (c *Call) goAway(f frame) {
	if f.stream != 0 || len(f.payload) < 8 {
		c.protocolError("a GOAWAY is malformed")
		return
	}
	// A server that only ends still answers what it has taken.
	if binary.BigEndian.Uint32(f.payload)&maxWindow < stream {
		c.fail(ErrUnprocessed)
	}
}

func (c *Call) windowUpdate(f frame) {
	if len(f.payload) != 4 || f.stream > stream {
		c.protocolError("a WINDOW_UPDATE is malformed")
		return
	}
	n := int64(binary.BigEndian.Uint32(f.payload) & maxWindow)
	if f.stream == 0 {
		c.connWindow += n
	} else {
		c.streamWindow += n
	}
	if n == 0 || c.connWindow > maxWindow || c.streamWindow > maxWindow {
		c.protocolError("a WINDOW_UPDATE grants nothing or too much")
		return
	}
	c.send()
}

func (c *Call) reset(f frame) {
	if len(f.payload) != 4 {
		c.protocolError("a RST_STREAM is malformed")
		return
	}
	code := binary.BigEndian.Uint32(f.payload)
	if code == resetRefused {
		c.fail(ErrUnprocessed)
		return
	}
	c.fail(resetStatus(code))
}

func (c *Call) data(f frame) {
	if c.received += len(f.payload); c.received > window {
		c.protocolError("it sends more than it was granted")
		return
	}
	body, ok := f.unpadded()
	if !ok || !c.answered {
		c.protocolError("DATA is malformed")
		return
	}
	c.reply = append(c.reply, body...)
	if len(c.reply) >= messageHead {
		if n := binary.BigEndian.Uint32(c.reply[1:]); n > MaxMessage {
			c.fail(&Status{CodeResourceExhausted, "grpc: received message larger than max (" + strconv.FormatUint(uint64(n), 10) + " vs. " + strconv.Itoa(MaxMessage) + ")"})
			return
		}
	}
	if f.flags&flagEndStream != 0 {
		c.fail(internalStatus("server closed the stream without sending trailers"))
	}
}

func (c *Call) headers(f frame) {
	body, ok := f.unpadded()
	if ok && f.flags&flagPriority != 0 {
		ok = len(body) >= 5
		body = body[min(5, len(body)):]
	}
	if !ok {
		c.protocolError("HEADERS are malformed")
		return
	}
	c.blockEnds = f.flags&flagEndStream != 0
	c.headerBlock(f, body)
}

// headerBlock adds a part of a block of headers and reads it when it is whole.
func (c *Call) headerBlock(f frame, part []byte) {
	c.block = append(c.block, part...)
	c.blockOpen = f.flags&flagEndHeaders == 0
	if len(c.block) > maxHeaderBlock {
		c.fail(internalStatus("peer header list size exceeded limit"))
		return
	}
	if c.blockOpen {
		return
	}
	var h responseHeaders
	err := c.hpack.decode(c.block, h.add)
	c.block = c.block[:0]
	switch {
	case errors.Is(err, errHeaderLimit):
		c.fail(internalStatus("peer header list size exceeded limit"))
	case err != nil:
		c.protocolError(err.Error())
	case !c.answered && h.informational() && !c.blockEnds: // an answer will follow
	case c.answered && !c.blockEnds:
		c.fail(internalStatus("a HEADERS frame cannot appear in the middle of a stream"))
	case !c.answered && !h.isGRPC():
		c.fail(h.refused())
	case c.blockEnds:
		c.finish(&h)
	default:
		c.answered = true
	}
}

// responseHeaders are those that count, of one block.
type responseHeaders struct{ status, contentType, grpcStatus, grpcMessage string }

func (h *responseHeaders) add(f headerField) {
	switch f.name {
	case ":status":
		h.status = f.value
	case "content-type":
		h.contentType = f.value
	case "grpc-status":
		h.grpcStatus = f.value
	case "grpc-message":
		h.grpcMessage = f.value
	}
}

func (h *responseHeaders) informational() bool { return len(h.status) == 3 && h.status[0] == '1' }

// isGRPC: "application/grpc" and what may follow it.
func (h *responseHeaders) isGRPC() bool {
	const want = "application/grpc"
	t := h.contentType
	if h.status != "200" || len(t) < len(want) || t[:len(want)] != want {
		return false
	}
	return len(t) == len(want) || t[len(want)] == '+' || t[len(want)] == ';'
}

func (h *responseHeaders) refused() *Status {
	switch h.status {
	case "":
		return internalStatus("malformed header: missing HTTP status")
	case "200":
		if h.contentType == "" {
			return &Status{CodeUnknown, "malformed header: missing HTTP content-type"}
		}
		return &Status{CodeUnknown, "transport: received unexpected content-type " + strconv.Quote(h.contentType)}
	}
	return &Status{httpStatus(h.status), "unexpected HTTP status code received from server: " + h.status}
}

// finish reads the trailers, which end the call.
func (c *Call) finish(h *responseHeaders) {
	code := int64(CodeUnknown)
	if h.grpcStatus != "" {
		var err error
		if code, err = strconv.ParseInt(h.grpcStatus, 10, 32); err != nil {
			c.fail(&Status{CodeUnknown, "transport: malformed grpc-status: " + err.Error()})
			return
		}
	}
	if code != 0 {
		c.fail(&Status{uint32(code), unescape(h.grpcMessage)})
		return
	}
	switch {
	case len(c.reply) == 0:
		c.fail(internalStatus("cardinality violation: received no response message from non-server-streaming RPC"))
		return
	case len(c.reply) < messageHead:
		c.fail(internalStatus("unexpected EOF"))
		return
	case c.reply[0] != 0:
		c.fail(internalStatus("grpc: compressed flag set with identity or empty encoding"))
		return
	}
	size := int(binary.BigEndian.Uint32(c.reply[1:]))
	switch rest := len(c.reply) - messageHead; {
	case size > rest:
		c.fail(internalStatus("unexpected EOF"))
	case size < rest:
		c.fail(internalStatus("cardinality violation: expected <EOF> for non server-streaming RPCs, but received another message"))
	default:
		c.reply, c.done = c.reply[messageHead:], true
	}
}
