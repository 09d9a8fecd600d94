package grpcwire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// script is what a server says, written with another implementation of HTTP/2.
type script struct {
	bytes.Buffer
	framer *http2.Framer
	block  bytes.Buffer
	enc    *hpack.Encoder
}

func newScript() *script {
	s := &script{}
	s.framer = http2.NewFramer(&s.Buffer, nil)
	s.framer.AllowIllegalWrites = true
	s.enc = hpack.NewEncoder(&s.block)
	return s
}

func (s *script) settings(all ...http2.Setting) *script {
	s.framer.WriteSettings(all...)
	return s
}

// headers writes a block of headers in pieces of a size; 0: in one.
func (s *script) headers(end bool, pieces int, pairs ...string) *script {
	s.block.Reset()
	for i := 0; i < len(pairs); i += 2 {
		s.enc.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	block := s.block.Bytes()
	first := block
	if pieces > 0 {
		first = block[:min(pieces, len(block))]
	}
	rest := block[len(first):]
	s.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: first, EndStream: end, EndHeaders: len(rest) == 0, PadLength: 3})
	for len(rest) > 0 {
		n := min(pieces, len(rest))
		s.framer.WriteContinuation(1, n == len(rest), rest[:n])
		rest = rest[n:]
	}
	return s
}

func (s *script) answer() *script {
	return s.headers(false, 0, ":status", "200", "content-type", "application/grpc")
}

func (s *script) trailers(code, message string) *script {
	return s.headers(true, 0, "grpc-status", code, "grpc-message", message)
}

func (s *script) data(b []byte) *script {
	s.framer.WriteDataPadded(1, false, b, make([]byte, 5))
	return s
}

func message(body string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...)
}

// play hands a server's bytes to a call in pieces and returns its result, and all that
// it wrote.
func play(t testing.TB, in []byte, pieces int) (reply string, written []byte, err error) {
	t.Helper()
	c := NewCall(Request{Method: "/rpc.X/Y", UserAgent: "aws-cni", Timeout: time.Second, Message: []byte("request")})
	written = bytes.Clone(c.Output())
	for len(in) > 0 && !c.Done() {
		n := min(pieces, len(in))
		c.Input(in[:n])
		in = in[n:]
		written = append(written, c.Output()...)
	}
	if !c.Done() {
		c.End("EOF")
	}
	body, err := c.Result()
	return string(body), written, err
}

func TestCall_Replies(t *testing.T) {
	t.Parallel()
	const unavailable = "rpc error: code = Unavailable desc = "
	const internal = "rpc error: code = Internal desc = "
	const reading = unavailable + "error reading from server: "
	start := func() *script { return newScript().settings() }
	for name, row := range map[string]struct {
		in    *script
		reply string
		err   string // "" = none
	}{
		"plain":             {start().answer().data(message("reply")).trailers("0", ""), "reply", ""},
		"empty message":     {start().answer().data(message("")).trailers("0", ""), "", ""},
		"in pieces":         {start().answer().data(message("reply")[:3]).data(message("reply")[3:7]).data(message("reply")[7:]).trailers("0", ""), "reply", ""},
		"continued headers": {start().headers(false, 2, ":status", "200", "content-type", "application/grpc+proto").data(message("reply")).trailers("0", ""), "reply", ""},
		"informational":     {start().headers(false, 0, ":status", "103").answer().data(message("reply")).trailers("0", ""), "reply", ""},
		"trailers only": {start().headers(true, 0, ":status", "200", "content-type", "application/grpc", "grpc-status", "9", "grpc-message", `wrong client version "a"`), "",
			`rpc error: code = FailedPrecondition desc = wrong client version "a"`},
		"escaped":         {start().answer().trailers("2", "1 error occurred:%0A%09* 100%25 %zz %4"), "", "rpc error: code = Unknown desc = 1 error occurred:\n\t* 100% %zz %4"},
		"status missing":  {start().answer().headers(true, 0, "x", "y"), "", "rpc error: code = Unknown desc = "},
		"status garbled":  {start().answer().trailers("x", ""), "", `rpc error: code = Unknown desc = transport: malformed grpc-status: strconv.ParseInt: parsing "x": invalid syntax`},
		"no message":      {start().answer().trailers("0", ""), "", internal + "cardinality violation: received no response message from non-server-streaming RPC"},
		"two messages":    {start().answer().data(message("a")).data(message("b")).trailers("0", ""), "", internal + "cardinality violation: expected <EOF> for non server-streaming RPCs, but received another message"},
		"half a message":  {start().answer().data(message("abc")[:6]).trailers("0", ""), "", internal + "unexpected EOF"},
		"half a head":     {start().answer().data([]byte{0, 0}).trailers("0", ""), "", internal + "unexpected EOF"},
		"compressed":      {start().answer().data([]byte{1, 0, 0, 0, 0}).trailers("0", ""), "", internal + "grpc: compressed flag set with identity or empty encoding"},
		"announced large": {start().answer().data([]byte{0, 1, 0, 0, 0}), "", "rpc error: code = ResourceExhausted desc = grpc: received message larger than max (16777216 vs. 262144)"},
		"not gRPC":        {start().headers(true, 0, ":status", "404", "content-type", "text/html"), "", "rpc error: code = Unimplemented desc = unexpected HTTP status code received from server: 404"},
		"other content":   {start().headers(true, 0, ":status", "200", "content-type", "application/grpcx"), "", `rpc error: code = Unknown desc = transport: received unexpected content-type "application/grpcx"`},
		"closed early":    {start().answer(), "", reading + "EOF"},
		"nothing":         {newScript(), "", unavailable + `connection error: desc = "error reading server preface: EOF"`},
		"no settings":     {newScript().answer(), "", unavailable + `connection error: desc = "error reading server preface: the first frame is not SETTINGS"`},
		"header garbage": {func() *script {
			s := start()
			s.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x80}, EndHeaders: true})
			return s
		}(), "", reading + "header block is malformed"},
		"large headers":   {start().headers(false, 16000, ":status", "200", "x", strings.Repeat("\x01", 70_000)), "", internal + "peer header list size exceeded limit"},
		"headers between": {start().answer().answer(), "", internal + "a HEADERS frame cannot appear in the middle of a stream"},
		"data first":      {start().data([]byte{0}), "", reading + "DATA is malformed"},
		"interrupted": {func() *script {
			s := start()
			s.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x88}})
			s.framer.WritePing(false, [8]byte{})
			return s
		}(), "", reading + "headers are interrupted"},
	} {
		for _, pieces := range []int{1, 7, 1 << 20} {
			reply, _, err := play(t, row.in.Bytes(), pieces)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if reply != row.reply || text != row.err {
				t.Errorf("%s in pieces of %d: %q, %s; want %q, %s", name, pieces, reply, text, row.reply, row.err)
			}
		}
	}
}

// frames is a script of one frame after the settings.
func frames(write func(*http2.Framer)) []byte {
	s := newScript().settings()
	write(s.framer)
	return s.Bytes()
}

func TestCall_OtherFrames(t *testing.T) {
	t.Parallel()
	const reading = "rpc error: code = Unavailable desc = error reading from server: "
	for name, row := range map[string]struct {
		in  []byte
		err string
	}{
		"reset":         {frames(func(f *http2.Framer) { f.WriteRSTStream(1, http2.ErrCodeInternal) }), "rpc error: code = Internal desc = stream terminated by RST_STREAM with error code: INTERNAL_ERROR"},
		"reset unknown": {frames(func(f *http2.Framer) { f.WriteRSTStream(1, 99) }), "rpc error: code = Unknown desc = stream terminated by RST_STREAM with error code: unknown error code 0x63"},
		"calm":          {frames(func(f *http2.Framer) { f.WriteRSTStream(1, http2.ErrCodeEnhanceYourCalm) }), "rpc error: code = ResourceExhausted desc = stream terminated by RST_STREAM with error code: ENHANCE_YOUR_CALM"},
		"other stream":  {frames(func(f *http2.Framer) { f.WriteRSTStream(3, 0) }), reading + "a frame is of a stream that nobody opened"},
		"push": {frames(func(f *http2.Framer) {
			f.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, EndHeaders: true})
		}), reading + "it pushes although push is disabled"},
		"refused":        {frames(func(f *http2.Framer) { f.WriteRSTStream(1, http2.ErrCodeRefusedStream) }), ErrUnprocessed.Error()},
		"going away":     {frames(func(f *http2.Framer) { f.WriteGoAway(0, http2.ErrCodeNo, []byte("bye")) }), ErrUnprocessed.Error()},
		"ending":         {frames(func(f *http2.Framer) { f.WriteGoAway(1, http2.ErrCodeNo, nil) }), reading + "EOF"},
		"window of zero": {frames(func(f *http2.Framer) { f.WriteWindowUpdate(0, 0) }), reading + "a WINDOW_UPDATE grants nothing or too much"},
		"window too big": {frames(func(f *http2.Framer) { f.WriteWindowUpdate(1, 1<<31-1) }), reading + "a WINDOW_UPDATE grants nothing or too much"},
		"ping short":     {frames(func(f *http2.Framer) { f.WriteRawFrame(http2.FramePing, 0, 0, []byte("x")) }), reading + "a PING is malformed"},
		"settings odd":   {frames(func(f *http2.Framer) { f.WriteRawFrame(http2.FrameSettings, 0, 0, []byte("x")) }), reading + "SETTINGS are malformed"},
		"padding only":   {frames(func(f *http2.Framer) { f.WriteRawFrame(http2.FrameHeaders, 0xc, 1, []byte{9, 0}) }), reading + "HEADERS are malformed"},
		"priority short": {frames(func(f *http2.Framer) { f.WriteRawFrame(http2.FrameHeaders, 0x24, 1, []byte{9, 0}) }), reading + "HEADERS are malformed"},
		"continuation":   {frames(func(f *http2.Framer) { f.WriteContinuation(1, true, nil) }), reading + "headers are continued that are complete"},
		"unknown":        {frames(func(f *http2.Framer) { f.WriteRawFrame(99, 0xff, 7, []byte("x")) }), reading + "EOF"},
		"advice":         {frames(func(f *http2.Framer) { f.WritePriority(5, http2.PriorityParam{Weight: 1}) }), reading + "EOF"},
		"too large":      {frames(func(f *http2.Framer) { f.WriteRawFrame(99, 0, 0, make([]byte, 1<<14+1)) }), `rpc error: code = Unavailable desc = connection error: desc = "http2: frame too large"`},
		"a flood": {frames(func(f *http2.Framer) {
			for range 70_000 {
				f.WritePing(true, [8]byte{})
			}
		}), reading + "it sends more than any call needs"},
		"beyond its window": {func() []byte {
			s := newScript().settings().answer()
			for range 40 {
				s.framer.WriteDataPadded(1, false, nil, make([]byte, 255))
				s.framer.WriteRawFrame(http2.FrameData, 8, 1, append([]byte{255}, make([]byte, 16000)...))
			}
			return s.Bytes()
		}(), reading + "it sends more than it was granted"},
	} {
		_, _, err := play(t, row.in, 4096)
		if err == nil || err.Error() != row.err {
			t.Errorf("%s: %v; want %s", name, err, row.err)
		}
	}
}

// TestCall_Written: what the client writes is a request as another implementation reads
// it, with answers to what the server asks.
func TestCall_Written(t *testing.T) {
	t.Parallel()
	in := newScript().settings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1})
	in.framer.WritePing(false, [8]byte{1, 2, 3})
	_, out, _ := play(t, in.answer().data(message("r")).trailers("0", "").Bytes(), 4096)
	if !bytes.HasPrefix(out, []byte(http2.ClientPreface)) {
		t.Fatalf("no preface: %q", out)
	}
	f := http2.NewFramer(io.Discard, bytes.NewReader(out[len(http2.ClientPreface):]))
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	var got []string
	for {
		frame, err := f.ReadFrame()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch x := frame.(type) {
		case *http2.MetaHeadersFrame:
			for _, h := range x.Fields {
				got = append(got, h.Name+": "+h.Value)
			}
		case *http2.DataFrame:
			got = append(got, "DATA "+string(x.Data()[5:]))
			if !x.StreamEnded() {
				t.Error("the request does not end")
			}
		default:
			got = append(got, frame.Header().Type.String())
			if x, ok := frame.(*http2.PingFrame); ok && (!x.IsAck() || x.Data != [8]byte{1, 2, 3}) {
				t.Error("the PING is not answered")
			}
		}
	}
	want := "SETTINGS, WINDOW_UPDATE, :method: POST, :scheme: http, :path: /rpc.X/Y, :authority: localhost, content-type: application/grpc, " +
		"user-agent: aws-cni, te: trailers, grpc-timeout: 1000000u, DATA request, SETTINGS, PING"
	if s := strings.Join(got, ", "); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
}

// TestCall_Windows: no more is sent than the server has granted, and all in the end.
func TestCall_Windows(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("x", 200_000)
	c := NewCall(Request{Method: "/a/b", Message: []byte(body)})
	sent, ended := 0, false
	take := func() {
		t.Helper()
		out := bytes.TrimPrefix(c.Output(), []byte(http2.ClientPreface))
		f := http2.NewFramer(io.Discard, bytes.NewReader(out))
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				return
			}
			if d, ok := frame.(*http2.DataFrame); ok {
				sent += len(d.Data())
				ended = d.StreamEnded()
			}
		}
	}
	grant := func(write func(*http2.Framer)) {
		var b bytes.Buffer
		write(http2.NewFramer(&b, nil))
		c.Input(b.Bytes())
		take()
	}
	take()
	steps := []struct {
		write func(*http2.Framer)
		want  int
	}{
		{func(f *http2.Framer) { f.WriteSettings() }, 65535},
		{func(f *http2.Framer) { f.WriteWindowUpdate(0, 100_000) }, 65535},
		{func(f *http2.Framer) { f.WriteWindowUpdate(1, 10) }, 65545},
		{func(f *http2.Framer) { f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}) }, 65545},
		{func(f *http2.Framer) { f.WriteWindowUpdate(1, 65535) }, 65545},
		{func(f *http2.Framer) { f.WriteWindowUpdate(1, 5) }, 65550},
		{func(f *http2.Framer) {
			f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
		}, 165535},
		{func(f *http2.Framer) { f.WriteWindowUpdate(0, 100_000) }, 200_005},
	}
	for i, s := range steps {
		grant(s.write)
		if sent != s.want || ended != (i == len(steps)-1) {
			t.Errorf("step %d: %d bytes sent, ended %v; want %d", i, sent, ended, s.want)
		}
	}
}

// TestCall_LongHeaders: headers beyond a frame are continued.
func TestCall_LongHeaders(t *testing.T) {
	t.Parallel()
	c := NewCall(Request{Method: "/" + strings.Repeat("m", 40_000)})
	f := http2.NewFramer(io.Discard, bytes.NewReader(bytes.TrimPrefix(c.Output(), []byte(http2.ClientPreface))))
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if h, ok := frame.(*http2.MetaHeadersFrame); ok {
			if n := len(h.PseudoValue("path")); n != 40_001 {
				t.Errorf("path of %d bytes", n)
			}
			return
		}
	}
}

func TestTimeoutText(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		1: "1u", time.Millisecond: "1000u", 99 * time.Second: "99000000u", 100 * time.Second: "100000m", 1000 * time.Hour: "99999999m",
	} {
		if got := timeoutText(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

// FuzzCall: whatever a server sends, in whatever pieces, the call ends the same, keeps no
// more than it may, and a reply is one that the server's bytes hold.
func FuzzCall(f *testing.F) {
	for _, s := range []*script{
		newScript().settings().answer().data(message("reply")).trailers("0", ""),
		newScript().settings().headers(false, 3, ":status", "200", "content-type", "application/grpc").data(message("reply")).trailers("5", "no%20"),
		newScript().settings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 3}),
	} {
		f.Add(s.Bytes(), 3)
	}
	f.Add(frames(func(f *http2.Framer) { f.WriteGoAway(0, 0, nil) }), 1)
	f.Add(frames(func(f *http2.Framer) { f.WriteRSTStream(1, 8) }), 9)
	f.Add(frames(func(f *http2.Framer) { f.WriteWindowUpdate(1, 4) }), 2)
	f.Fuzz(func(t *testing.T, in []byte, pieces int) {
		pieces = max(1, pieces%5000)
		reply, out, err := play(t, in, 1<<20)
		again, outAgain, errAgain := play(t, in, pieces)
		if reply != again || (err == nil) != (errAgain == nil) || err != nil && err.Error() != errAgain.Error() {
			t.Fatalf("whole: %q %v; in pieces of %d: %q %v", reply, err, pieces, again, errAgain)
		}
		if !bytes.Equal(out, outAgain) {
			t.Fatal("what is written depends on the pieces")
		}
		if err == nil && len(reply) > len(in) {
			t.Fatalf("a reply of %d bytes from %d", len(reply), len(in))
		}
		if len(out) > 4096+3*len(in) {
			t.Fatalf("%d bytes written for %d", len(out), len(in))
		}
	})
}
