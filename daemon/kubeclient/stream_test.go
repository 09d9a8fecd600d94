package kubeclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// listOf parses a list into texts.
func listOf(text string) (items []string, meta listMeta, err error) {
	meta, err = readList(strings.NewReader(text), func(raw json.RawMessage) error {
		items = append(items, string(raw))
		return nil
	})
	return items, meta, err
}

func TestReadList(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text  string
		items []string
		meta  listMeta
		err   string
	}{
		"empty":          {`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}`, nil, listMeta{ResourceVersion: "7"}, ""},
		"null":           {`{"items":null,"metadata":{"resourceVersion":"7"}}`, nil, listMeta{ResourceVersion: "7"}, ""},
		"no items":       {`{"metadata":{"resourceVersion":"7"}}`, nil, listMeta{ResourceVersion: "7"}, ""},
		"items":          {`{"metadata":{"resourceVersion":"7","continue":"c","remainingItemCount":3},"items":[{"a":1},{"b":[2]}]}`, []string{`{"a":1}`, `{"b":[2]}`}, listMeta{ResourceVersion: "7", Continue: "c", RemainingItemCount: 3}, ""},
		"no list":        {`{"kind":"Status","code":200}`, nil, listMeta{}, `the response is a "Status"`},
		"no object":      {`[]`, nil, listMeta{}, "got [, want {"},
		"items is none":  {`{"items":{}}`, nil, listMeta{}, "in place of items"},
		"cut":            {`{"metadata":{"resourceVersion":"7"},"items":[{"a":1},`, []string{`{"a":1}`}, listMeta{}, "EOF"},
		"cut at the end": {`{"metadata":{"resourceVersion":"7"},"items":[]`, nil, listMeta{}, "EOF"},
		"nothing":        {``, nil, listMeta{}, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			items, meta, err := listOf(tc.text)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("error %v, want %q", err, tc.err)
				}
				return
			}
			if diff := cmp.Diff(tc.items, items); diff != "" || meta != tc.meta || err != nil {
				t.Errorf("%+v, %v (-want +got):\n%s", meta, err, diff)
			}
		})
	}
}

// endless repeats its text without end.
type endless struct{ text string }

func (e endless) Read(p []byte) (int, error) {
	n := 0
	for n+len(e.text) <= len(p) {
		n += copy(p[n:], e.text)
	}
	return n, nil
}

// TestStream_Bounds: neither one large item nor many items can fill the memory.
func TestStream_Bounds(t *testing.T) {
	t.Parallel()
	whole := func(head, rest string) io.Reader { return io.MultiReader(strings.NewReader(head), endless{rest}) }
	nothing := func(json.RawMessage) error { return nil }
	if _, err := readList(whole(`{"items":[{"a":"`, "x"), nothing); !errors.Is(err, ErrTooLarge) {
		t.Errorf("an endless item: %v", err)
	}
	if _, err := readList(whole(`{"`, "x"), nothing); !errors.Is(err, ErrTooLarge) {
		t.Errorf("an endless key: %v", err)
	}
	endlessList := func(context.Context, string, Request, url.Values) (io.ReadCloser, error) {
		return io.NopCloser(whole(`{"items":[`, `{},`)), nil
	}
	var many *TooManyError
	if err := List(t.Context(), endlessList, Request{Kind: Pods}, Limits{Objects: 1000, Within: time.Minute}, nothing); !errors.As(err, &many) {
		t.Errorf("an endless list: %v", err)
	}
	if _, err := newStream(whole(`{"type":"ADDED","object":{"a":"`, "x")).readFrame(); !errors.Is(err, ErrTooLarge) {
		t.Errorf("an endless frame: %v", err)
	}
	// Many items of normal size are fine, whatever their total size.
	s, text := newStream(endless{`{"type":"ADDED","object":{}}` + "\n"}), 0
	for text < 3*MaxObject {
		f, err := s.readFrame()
		if err != nil {
			t.Fatal(err)
		}
		text += len(f.Type) + len(f.Object) + 20
	}
}

func TestReadFrame(t *testing.T) {
	t.Parallel()
	s := newStream(strings.NewReader(`{"type":"ADDED","object":{"a":1}}
{"type":"BOOKMARK","object":{}}{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old resource version"}}
{"type":"NEWS","object":{}}
`))
	if f, err := s.readFrame(); err != nil || f.Type != added || string(f.Object) != `{"a":1}` {
		t.Errorf("%+v, %v", f, err)
	}
	if f, err := s.readFrame(); err != nil || f.Type != bookmark {
		t.Errorf("%+v, %v", f, err)
	}
	if _, err := s.readFrame(); !Gone(err) {
		t.Errorf("error %v, want that the version is gone", err)
	}
	if _, err := s.readFrame(); err == nil || !strings.Contains(err.Error(), "NEWS") {
		t.Errorf("error %v, want the type", err)
	}
	if _, err := s.readFrame(); !errors.Is(err, io.EOF) {
		t.Errorf("error %v, want the end", err)
	}
}

// FuzzReadList: what is read as a list is also one to encoding/json, with the same items.
func FuzzReadList(f *testing.F) {
	for _, s := range []string{
		``, `{}`, `{"metadata":{"resourceVersion":"1"},"items":[{"a":1},2,null]}`, `{"items":[],"items":[1],"metadata":{"resourceVersion":"1"}}`,
		`{"metadata":{"resourceVersion":"1"},"items":null}`, `{"metadata":{"resourceVersion":"1"},"items":[{]}`, `{"metadata":{"resourceVersion":"1"}}x`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var items []string
		_, err := readList(bytes.NewReader(text), func(raw json.RawMessage) error {
			items = append(items, string(raw))
			return nil
		})
		if err != nil {
			return
		}
		// Only the first value of the stream is read; the rest is ignored.
		decoder := json.NewDecoder(bytes.NewReader(text))
		var object map[string]json.RawMessage
		if err := decoder.Decode(&object); err != nil {
			t.Fatalf("%q is read, but encoding/json says: %v", text, err)
		}
		var want []json.RawMessage
		if raw, ok := object["items"]; ok {
			if err := json.Unmarshal(raw, &want); err != nil {
				t.Fatal(err)
			}
		}
		// A duplicate key is read twice here, while encoding/json keeps its last value.
		if len(items) < len(want) {
			t.Fatalf("%q: %d items, want %d", text, len(items), len(want))
		}
		for i, item := range items[len(items)-len(want):] {
			if item != string(want[i]) {
				t.Errorf("item %d is %q, want %q", i, item, want[i])
			}
		}
	})
}

// FuzzReadFrame: a frame has a known type and an object, or is an error.
func FuzzReadFrame(f *testing.F) {
	for _, s := range []string{
		``, `{}`, `{"type":"ADDED","object":{}}`, `{"type":"ERROR","object":{"code":410,"reason":"Gone"}}`, `{"type":"ERROR"}`, `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1"}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s := newStream(bytes.NewReader(text))
		for {
			event, err := s.readFrame()
			if err != nil {
				_ = Gone(err)
				return
			}
			switch event.Type {
			case added, modified, deleted, bookmark:
			default:
				t.Fatalf("a frame of type %q", event.Type)
			}
		}
	})
}
