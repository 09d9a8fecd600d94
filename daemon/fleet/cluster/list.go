package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"strconv"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/tunnel"
)

// listMeta is what is used of a list's metadata.
type listMeta struct {
	ResourceVersion    string `json:"resourceVersion"`
	Continue           string `json:"continue"`
	RemainingItemCount int    `json:"remainingItemCount"`
}

// errMany is the error of a list with more objects than are wanted.
var errMany = errors.New("there are more than requested")

// list reads all objects of a kind, page by page, and hands each on as soon as it is
// decoded; version is where a watch goes on.
func list[T any](ctx context.Context, a *api, k Kind, namespace string, q query, each func(T)) (version string, _ error) {
	return listUpTo(ctx, a, k, namespace, q, math.MaxInt, each)
}

// listUpTo is list, that gives up with errMany as soon as it is seen that there are more
// objects than most.
func listUpTo[T any](ctx context.Context, a *api, k Kind, namespace string, q query, most int, each func(T)) (version string, _ error) {
	r := k.request("list", namespace, "")
	ask := query{"limit": strconv.Itoa(pageSize)}
	maps.Copy(ask, q)
	count := 0
	for range maxPages {
		meta, err := page(ctx, a, r, k.path(namespace), ask, func(item T) error {
			if count++; count > maxItems {
				return tooMany(r, maxItems, "of them")
			}
			each(item)
			return nil
		})
		if err != nil {
			return "", err
		}
		if count+meta.RemainingItemCount > most {
			return "", errMany
		}
		if meta.Continue == "" {
			return meta.ResourceVersion, nil
		}
		ask["continue"] = meta.Continue
	}
	return "", tooMany(r, maxPages, "pages")
}

func tooMany(r tunnel.Request, most int, of string) error {
	return &Error{Reason: introspect.ReasonTooLarge, Err: fmt.Errorf("%s %s: there are more than %d %s: choose fewer with --nodes, --selector or --namespace", r.Verb, r.Resource, most, of)}
}

// page reads one page. The limit is of each: over a slow line all of a large cluster may
// take longer, and would be restarted forever.
func page[T any](ctx context.Context, a *api, r tunnel.Request, path string, ask query, each func(T) error) (listMeta, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	body, err := a.open(ctx, http.MethodGet, r, path, ask, nil)
	if err != nil {
		return listMeta{}, err
	}
	defer body.Close()
	meta, err := readList(body, each)
	if err != nil {
		return listMeta{}, unreadable(ctx, r, err)
	}
	return meta, nil
}

// unreadable is the error of an answer that cannot be read to its end.
func unreadable(ctx context.Context, r tunnel.Request, err error) error {
	var known *Error
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	if errors.As(err, &known) {
		return known
	}
	if errors.As(err, &syntax) || errors.As(err, &kind) || errors.Is(err, errForm) {
		return &Error{Reason: introspect.ReasonMalformed, Err: fmt.Errorf("%s %s: the API server's response: %w", r.Verb, r.Resource, err)}
	}
	return tunnel.Failed(ctx, err)
}

var errForm = errors.New("it does not have the API's format")

// budget stops a reader that is asked for more than what is left.
type budget struct {
	r    io.Reader
	left int
}

func (b *budget) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, &Error{Reason: introspect.ReasonTooLarge, Err: fmt.Errorf("one object in the API server's response is larger than %d MiB", maxObject>>20)}
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// stream decodes a long answer thing by thing, each of bounded size.
type stream struct {
	*json.Decoder
	budget *budget
}

func newStream(r io.Reader) stream {
	b := &budget{r: r}
	return stream{Decoder: json.NewDecoder(b), budget: b}
}

func (s stream) next(out any) error {
	s.budget.left = maxObject
	return s.Decode(out)
}

func (s stream) token() (json.Token, error) {
	s.budget.left = maxObject
	t, err := s.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return t, err
}

func (s stream) expect(want json.Delim) error {
	t, err := s.token()
	if err == nil && t != want {
		return fmt.Errorf("%w: %v in place of %v", errForm, t, want)
	}
	return err
}

// readList reads a list and hands on its items one by one.
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

func readItems[T any](s stream, each func(T) error) error {
	t, err := s.token()
	if err != nil || t == nil { // null is an empty list
		return err
	}
	if t != json.Delim('[') {
		return fmt.Errorf("%w: %v in place of items", errForm, t)
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
