package kubeclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxObject bounds one object as JSON, in bytes. etcd stores at most 1.5 MiB per object,
// mostly in the denser protobuf.
const MaxObject = 4 << 20

// Errors of a response's content.
var (
	ErrTooLarge = fmt.Errorf("one object in the API server's response is larger than %d MiB", MaxObject>>20)
	ErrFormat   = errors.New("unexpected response format")
)

// stream decodes a long response object by object.
type stream struct {
	*json.Decoder
	budget *budget
}

func newStream(r io.Reader) stream {
	b := &budget{r: r}
	return stream{Decoder: json.NewDecoder(b), budget: b}
}

// budget stops a read beyond what is left.
type budget struct {
	r    io.Reader
	left int
}

func (b *budget) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, ErrTooLarge
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// next decodes the next value.
func (s stream) next(out any) error {
	s.budget.left = MaxObject
	return s.Decode(out)
}

// token reads the next token, which may be a long string.
func (s stream) token() (json.Token, error) {
	s.budget.left = MaxObject
	t, err := s.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return t, err
}

func (s stream) expect(want json.Delim) error {
	t, err := s.token()
	if err == nil && t != want {
		return fmt.Errorf("%w: got %v, want %v", ErrFormat, t, want)
	}
	return err
}

// listMeta holds the members of a list that are used besides its items.
type listMeta struct {
	ResourceVersion    string `json:"resourceVersion"`
	Continue           string `json:"continue"`
	RemainingItemCount int    `json:"remainingItemCount"`
}

// readList reads a list and passes its items on one by one.
func readList[T any](r io.Reader, each func(T) error) (meta listMeta, err error) {
	s := newStream(r)
	if err := s.expect('{'); err != nil {
		return meta, err
	}
	for s.More() {
		key, err := s.token()
		if err != nil {
			return meta, err
		}
		switch key {
		case "kind":
			err = s.listKind()
		case "metadata":
			err = s.next(&meta)
		case "items":
			err = readItems(s, each)
		default:
			err = s.next(new(json.RawMessage))
		}
		if err != nil {
			return meta, err
		}
	}
	return meta, s.expect('}')
}

// listKind checks that the response is a list: the server may not be an API server.
func (s stream) listKind() error {
	var kind string
	if err := s.next(&kind); err != nil {
		return err
	}
	if !strings.HasSuffix(kind, "List") {
		return fmt.Errorf("%w: the response is a %q, not a list", ErrFormat, kind)
	}
	return nil
}

func readItems[T any](s stream, each func(T) error) error {
	t, err := s.token()
	if err != nil || t == nil { // null is an empty list
		return err
	}
	if t != json.Delim('[') {
		return fmt.Errorf("%w: %v in place of items", ErrFormat, t)
	}
	for s.More() {
		var item T
		if err := s.next(&item); err != nil {
			return err
		}
		if err := each(item); err != nil {
			return err
		}
	}
	return s.expect(']')
}

// frame is one event of a watch.
type frame struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// Types of frames.
const (
	added    = "ADDED"
	modified = "MODIFIED"
	deleted  = "DELETED"
	bookmark = "BOOKMARK"
	failure  = "ERROR"
)

// readFrame reads the next event. io.EOF is the ordinary end of a watch. If an event says
// that the watch failed, its error is returned.
func (s stream) readFrame() (frame, error) {
	var f frame
	if err := s.next(&f); err != nil {
		return frame{}, err
	}
	switch f.Type {
	case added, modified, deleted, bookmark:
		return f, nil
	case failure:
		var status metav1.Status
		if err := json.Unmarshal(f.Object, &status); err != nil {
			return frame{}, fmt.Errorf("%w: an error of the watch: %w", ErrFormat, err)
		}
		return frame{}, &apierrors.StatusError{ErrStatus: status}
	}
	return frame{}, fmt.Errorf("%w: the watch has an event of type %.32q", ErrFormat, f.Type)
}
