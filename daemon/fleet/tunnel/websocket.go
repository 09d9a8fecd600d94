package tunnel

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	constants "k8s.io/apimachinery/pkg/util/portforward"
)

const (
	// webSocketBuffer is the size of the read and write buffers of a WebSocket: enough for a
	// request and most responses.
	webSocketBuffer = 4 << 10
	// farewell is how long a peer may delay the sending of our close message.
	farewell = 100 * time.Millisecond
)

// newWebSocketDialer returns the dialer for the streams of a forwarded port.
func (f *front) newWebSocketDialer() *websocket.Dialer {
	return &websocket.Dialer{
		Proxy: f.pool.Proxy, NetDialContext: f.pool.DialContext, TLSClientConfig: f.pool.TLSClientConfig,
		Subprotocols:   []string{constants.WebsocketsSPDYTunnelingPortForwardV1},
		ReadBufferSize: webSocketBuffer, WriteBufferSize: webSocketBuffer, WriteBufferPool: &sync.Pool{},
	}
}

// upgradeToWebSocket is a transport for such upgrades. Like net/http, it returns the connection, a
// *webSocket, as the body of a response with status 101. Any other response is the API server's
// refusal, of which gorilla keeps the first KiB.
func upgradeToWebSocket(d *websocket.Dialer) tripper {
	return func(req *http.Request) (*http.Response, error) {
		c, resp, err := d.DialContext(req.Context(), "ws"+strings.TrimPrefix(req.URL.String(), "http"), req.Header)
		switch {
		case err == nil:
			resp.Body = &webSocket{Conn: c}
		case !errors.Is(err, websocket.ErrBadHandshake):
			return nil, err
		}
		return resp, nil
	}
}

// webSocket carries bytes in binary messages; message boundaries have no meaning.
type webSocket struct {
	*websocket.Conn
	message io.Reader // the one being read
	writing atomic.Bool
	once    sync.Once
}

func (w *webSocket) Read(p []byte) (int, error) {
	for {
		if w.message == nil {
			kind, message, err := w.NextReader()
			switch {
			case err != nil:
				return 0, err
			case kind != websocket.BinaryMessage:
				return 0, fmt.Errorf("%w: a message of type %d", errProtocol, kind)
			}
			w.message = message
		}
		n, err := w.message.Read(p)
		if errors.Is(err, io.EOF) {
			w.message, err = nil, nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// Write sends one message; it must not be called concurrently.
func (w *webSocket) Write(p []byte) (int, error) {
	w.writing.Store(true)
	defer w.writing.Store(false)
	if err := w.WriteMessage(websocket.BinaryMessage, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close sends a close message, if that is possible at once, and closes the connection, which
// aborts a running write.
func (w *webSocket) Close() (err error) {
	w.once.Do(func() {
		if !w.writing.Load() {
			normal := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
			_ = w.WriteControl(websocket.CloseMessage, normal, time.Now().Add(farewell)) // best effort
		}
		err = w.Conn.Close()
	})
	return err
}
