package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxItems bounds a list. The longest are the cluster's ENIConfigs, of which there is
// about one per availability zone, and a node's pods.
const maxItems = 20_000

// errTooLarge ends the reading of an answer in which one thing exceeds its limit.
var errTooLarge = fmt.Errorf("one object of the answer is larger than %d MiB", maxObject>>20)

// stream decodes a long answer thing by thing, each of bounded size.
type stream struct {
	*json.Decoder
	budget *budget
}

func newStream(r io.Reader) stream {
	b := &budget{r: r}
	return stream{Decoder: json.NewDecoder(b), budget: b}
}

// next decodes the next value.
func (s stream) next(out any) error {
	s.budget.left = maxObject
	return s.Decode(out)
}

// token reads the next token, which may be a long string.
func (s stream) token() (json.Token, error) {
	s.budget.left = maxObject
	return s.Token()
}

// budget stops a reader that is asked for more than what is left.
type budget struct {
	r    io.Reader
	left int
}

func (b *budget) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// listMeta is what is used of a list's metadata.
type listMeta struct {
	ResourceVersion string `json:"resourceVersion"`
	Continue        string `json:"continue"`
}

// readList reads a list and hands on its items one by one.
func readList(r io.Reader, each func(raw []byte) error) (listMeta, error) {
	s, meta := newStream(r), listMeta{}
	if err := s.expect(json.Delim('{')); err != nil {
		return meta, err
	}
	for s.More() {
		key, err := s.token()
		if err != nil {
			return meta, err
		}
		switch key {
		case "metadata":
			err = s.next(&meta)
		case "items":
			err = s.readItems(each)
		default:
			err = s.next(new(json.RawMessage))
		}
		if err != nil {
			return meta, err
		}
	}
	if err := s.expect(json.Delim('}')); err != nil {
		return meta, err
	}
	if meta.ResourceVersion == "" {
		return meta, errors.New("the list has no resourceVersion")
	}
	return meta, nil
}

func (s stream) readItems(each func(raw []byte) error) error {
	t, err := s.token()
	if err != nil || t == nil { // null is an empty list
		return err
	}
	if t != json.Delim('[') {
		return fmt.Errorf("the list has %v in place of items", t)
	}
	for n := 1; s.More(); n++ {
		if n > maxItems {
			return fmt.Errorf("the list has more than %d items", maxItems)
		}
		var raw json.RawMessage
		if err := s.next(&raw); err != nil {
			return err
		}
		if err := each(raw); err != nil {
			return err
		}
	}
	_, err = s.token() // ]
	return err
}

func (s stream) expect(want json.Delim) error {
	t, err := s.token()
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	if err == nil && t != want {
		return fmt.Errorf("the answer has %v in place of %v", t, want)
	}
	return err
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

// readFrame reads the next event. io.EOF is the ordinary end of a watch; an event that
// says that the watch failed is the error it carries.
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
			return frame{}, fmt.Errorf("read an error of the watch: %w", err)
		}
		return frame{}, &apierrors.StatusError{ErrStatus: status}
	}
	return frame{}, fmt.Errorf("the watch has an event of type %.32q", f.Type)
}
