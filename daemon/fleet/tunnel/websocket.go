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
	// webSocketBuffer is of what is read of a WebSocket, and of what is written: a request
	// and most answers have less.
	webSocketBuffer = 4 << 10
	// farewell is how long a peer may keep us from saying that we go.
	farewell = 100 * time.Millisecond
)

// newWebSocketDialer makes what upgrades connections for the streams of a forwarded port.
func (f *front) newWebSocketDialer() *websocket.Dialer {
	return &websocket.Dialer{
		Proxy: f.pool.Proxy, NetDialContext: f.pool.DialContext, TLSClientConfig: f.pool.TLSClientConfig,
		Subprotocols:   []string{constants.WebsocketsSPDYTunnelingPortForwardV1},
		ReadBufferSize: webSocketBuffer, WriteBufferSize: webSocketBuffer, WriteBufferPool: &sync.Pool{},
	}
}

// upgradeToWebSocket is a transport of such upgrades. As net/http's it gives the connection
// as the body of an answer of status 101, a *webSocket; any other answer is the API
// server's refusal; gorilla keeps its first KiB.
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

// webSocket is one whose binary messages carry bytes, wherever one ends.
type webSocket struct {
	*websocket.Conn
	message io.Reader // the one that is being read
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

// Write sends one message; one goroutine at a time.
func (w *webSocket) Write(p []byte) (int, error) {
	w.writing.Store(true)
	defer w.writing.Store(false)
	if err := w.WriteMessage(websocket.BinaryMessage, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close says that it was no accident, if that is possible at once, and ends the connection,
// with a write that is under way.
func (w *webSocket) Close() (err error) {
	w.once.Do(func() {
		if !w.writing.Load() {
			normal := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
			_ = w.WriteControl(websocket.CloseMessage, normal, time.Now().Add(farewell)) // who does not get it sees the end
		}
		err = w.Conn.Close()
	})
	return err
}
