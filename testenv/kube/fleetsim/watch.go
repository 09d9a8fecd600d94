package fleetsim

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	watchTimeout  = 45 * time.Minute // for requests without one
	bookmarkEvery = 10 * time.Second
	initialEnd    = metav1.InitialEventsAnnotationKey
)

func (s *Sim) serveWatch(w http.ResponseWriter, r *http.Request, q request) error {
	sel, err := s.selection(r, q)
	if err != nil {
		return err
	}
	values := r.URL.Query()
	timeout := watchTimeout
	if n, err := strconv.Atoi(values.Get("timeoutSeconds")); err == nil && n > 0 {
		timeout = time.Duration(n) * time.Second
	}
	initial := values.Get("sendInitialEvents") == "true"
	bookmarks := values.Get("allowWatchBookmarks") == "true" || values.Get("allowWatchBookmarks") == "1"
	version := s.hub.current()
	switch text := values.Get("resourceVersion"); {
	case text == "" || text == "0":
		initial = initial || values.Get("sendInitialEvents") == ""
	case initial: // the newest version is never older than the requested one
	default:
		if version, err = strconv.ParseUint(text, 10, 64); err != nil {
			return apierrors.NewBadRequest(fmt.Sprintf("Invalid value: %q: the resource version is not a number", text))
		}
	}
	if version < s.hub.oldest() {
		return tooOld(version, s.hub.oldest())
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	defer s.watched(q.resource)()

	w.Header().Set("Content-Type", contentJSON)
	w.WriteHeader(http.StatusOK)
	out := &watchWriter{sim: s, sel: sel, w: w, flush: http.NewResponseController(w)}
	if initial {
		for _, e := range sel.entries(s) {
			if o := e.build(); sel.matches(o) && !out.send(watch.Added, o) {
				return nil
			}
		}
		if values.Get("sendInitialEvents") == "true" && bookmarks && !out.bookmark(version, true) {
			return nil
		}
	}
	if !out.flushed() {
		return nil
	}
	tick := make(chan struct{})
	go func() {
		t := time.NewTicker(bookmarkEvery)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
			select {
			case tick <- struct{}{}:
			case <-ctx.Done():
				return
			}
		}
	}()
	gone := s.hub.follow(ctx, q.resource, version, tick, out.see, func(version uint64) bool {
		return !bookmarks || (out.bookmark(version, false) && out.flushed())
	})
	if gone {
		out.gone(version, s.hub.oldest())
	}
	return nil
}

func tooOld(version, oldest uint64) error {
	return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", version, oldest))
}

// watchWriter writes the events of one watch.
type watchWriter struct {
	sim    *Sim
	sel    selection
	w      http.ResponseWriter
	flush  *http.ResponseController
	headed bool // table columns have been sent
}

func (o *watchWriter) see(c change) bool {
	was, is := o.sel.matches(c.prev), o.sel.matches(c.now)
	kind := c.kind
	switch {
	case kind == watch.Modified && !was && is:
		kind = watch.Added
	case kind == watch.Modified && was && !is:
		kind = watch.Deleted
	case !is:
		return true
	}
	return o.send(kind, c.now) && o.flushed()
}

func (o *watchWriter) send(kind watch.EventType, object runtime.Object) bool {
	if o.sel.form.table {
		object = o.sel.table([]runtime.Object{object}, o.sim, !o.headed)
		o.headed = true
	}
	return o.write(kind, object)
}

func (o *watchWriter) write(kind watch.EventType, object any) bool {
	b, err := json.Marshal(struct {
		Type   watch.EventType `json:"type"`
		Object any             `json:"object"`
	}{kind, object})
	if err != nil {
		return false
	}
	_, err = o.w.Write(append(b, '\n'))
	return err == nil
}

func (o *watchWriter) flushed() bool { return o.flush.Flush() == nil }

// bookmark reports the watch's position: an object of its kind with only the resource version.
func (o *watchWriter) bookmark(version uint64, end bool) bool {
	m := map[string]any{"resourceVersion": strconv.FormatUint(version, 10)}
	if end {
		m["annotations"] = map[string]string{initialEnd: "true"}
	}
	if o.sel.form.table {
		return o.write(watch.Bookmark, map[string]any{"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": m, "columnDefinitions": nil, "rows": []any{}})
	}
	return o.write(watch.Bookmark, map[string]any{"kind": o.sel.resource.kind, "apiVersion": o.sel.resource.groupVersion(), "metadata": m})
}

// gone ends a watch whose next changes are no longer stored.
func (o *watchWriter) gone(version, oldest uint64) {
	var status apierrors.APIStatus = apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", version, oldest))
	body := status.Status()
	body.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	_ = o.write(watch.Error, body)
	_ = o.flush.Flush()
}
