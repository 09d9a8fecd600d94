package fleetsim

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"sync"
)

// compressors are reused, as in kube-apiserver: a new one takes 800 KB.
var compressors = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // the level is valid
	return z
}}

// writeBody writes a whole body, compressed if it is longer than from and the client accepts
// that.
func writeBody(w http.ResponseWriter, r *http.Request, body []byte, from int) {
	if len(body) < from || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		_, _ = w.Write(body) // a client that has gone needs no answer
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	z, _ := compressors.Get().(*gzip.Writer)
	defer compressors.Put(z)
	z.Reset(w)
	_, _ = z.Write(body)
	_ = z.Close()
}
