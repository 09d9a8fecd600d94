package kubeclient

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"
)

// Request says what to list or watch.
type Request struct {
	Kind      Kind
	Namespace string // "" = all
	Selection
}

// Selection narrows a list.
type Selection struct{ Fields, Labels string }

// with adds the selection to a query.
func (r Request) with(q url.Values) url.Values {
	if r.Fields != "" {
		q.Set("fieldSelector", r.Fields)
	}
	if r.Labels != "" {
		q.Set("labelSelector", r.Labels)
	}
	return q
}

// Open requests the objects of a kind in a namespace, with the complete query, and returns
// the response's body. Its error is the API server's refusal, or why there was no response.
type Open func(ctx context.Context, verb string, r Request, q url.Values) (io.ReadCloser, error)

// Verbs of Open.
const (
	VerbList  = "list"
	VerbWatch = "watch"
)

// Limits bound a list.
type Limits struct {
	Objects int
	Within  time.Duration // for one page, and until a watch is answered
}

// PageSize is how many objects a list requests per page.
const PageSize = 500

const maxPages = 10_000 // pages may be short if a selector skips most objects

// TooManyError reports a list with more objects than its limit.
type TooManyError struct {
	Max int
	Of  string // objects, pages
}

func (e *TooManyError) Error() string { return fmt.Sprintf("more than %d %s", e.Max, e.Of) }

// List reads all objects, page by page, and passes each on as soon as it is decoded.
func List[T any](ctx context.Context, open Open, r Request, l Limits, each func(T) error) error {
	_, err := list(ctx, open, r, paged(), l, each)
	return err
}

// paged returns a query for one page.
func paged() url.Values { return url.Values{"limit": {strconv.Itoa(PageSize)}} }

// list reads the pages that follow the first query; a watch can continue from version. It
// gives up as soon as it is clear that there are too many objects.
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

// page reads one page. The time limit applies per page: over a slow connection the whole
// list of a large cluster may take longer, and would be restarted forever.
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
