package kubeclient

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"
)

// Request says what is listed or watched.
type Request struct {
	Kind      Kind
	Namespace string // "" = all
	Selection
}

// Selection narrows a list.
type Selection struct{ Fields, Labels string }

// with is a whole query.
func (r Request) with(q url.Values) url.Values {
	if r.Fields != "" {
		q.Set("fieldSelector", r.Fields)
	}
	if r.Labels != "" {
		q.Set("labelSelector", r.Labels)
	}
	return q
}

// Open asks the API server for the objects of a kind in a namespace, with a whole query, and
// returns the body of its answer. Its error is what the API server refused, or why it did
// not answer.
type Open func(ctx context.Context, verb string, r Request, q url.Values) (io.ReadCloser, error)

// Verbs of Open.
const (
	VerbList  = "list"
	VerbWatch = "watch"
)

// Limits bound a list.
type Limits struct {
	Objects int
	Within  time.Duration // of one page, and until a watch is answered
}

// PageSize is how many objects a list asks for at once.
const PageSize = 500

const maxPages = 10_000 // they may be short where a selector passes over most

// TooManyError is the error of a list with more objects than its limit.
type TooManyError struct {
	Most int
	Of   string // objects, pages
}

func (e *TooManyError) Error() string { return fmt.Sprintf("there are more than %d %s", e.Most, e.Of) }

// List reads all objects, page by page, and hands each on as soon as it is decoded.
func List[T any](ctx context.Context, open Open, r Request, l Limits, each func(T) error) error {
	_, err := list(ctx, open, r, paged(), l, each)
	return err
}

// paged asks for a page.
func paged() url.Values { return url.Values{"limit": {strconv.Itoa(PageSize)}} }

// list reads the pages that follow the first query; version is where a watch goes on. It
// gives up as soon as it is seen that there are too many objects.
func list[T any](ctx context.Context, open Open, r Request, first url.Values, l Limits, each func(T) error) (version string, _ error) {
	ask, count := r.with(first), 0
	for range maxPages {
		meta, err := page(ctx, open, r, ask, l.Within, func(item T) error {
			if count++; count > l.Objects {
				return &TooManyError{l.Objects, "objects"}
			}
			return each(item)
		})
		if err != nil {
			return "", err
		}
		if count+meta.RemainingItemCount > l.Objects {
			return "", &TooManyError{l.Objects, "objects"}
		}
		if meta.Continue == "" {
			return meta.ResourceVersion, nil
		}
		ask = r.with(paged())
		ask.Set("continue", meta.Continue)
	}
	return "", &TooManyError{maxPages, "pages"}
}

// page reads one page. The limit is of each: over a slow line all of a large cluster may
// take longer, and would be restarted forever.
func page[T any](ctx context.Context, open Open, r Request, ask url.Values, within time.Duration, each func(T) error) (listMeta, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	body, err := open(ctx, VerbList, r, ask)
	if err != nil {
		return listMeta{}, err
	}
	defer body.Close()
	meta, err := readList(body, each)
	if err != nil {
		return listMeta{}, fmt.Errorf("read response: %w", err)
	}
	return meta, nil
}
